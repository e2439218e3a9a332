import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { createBackground } from "./background-tasks.ts";
import { createAdmission } from "./core/admission/admission.ts";
import { parseApiKey } from "./core/auth/api-key.ts";
import { type Authenticator, createAuthenticator } from "./core/auth/authenticate.ts";
import { configuredPeppers } from "./core/auth/pepper.ts";
import { createInstallationWatch } from "./core/background/installation-watch.ts";
import { createSuspendWatch } from "./core/background/suspend-watch.ts";
import { openReplicaCache, type ReplicaCache } from "./core/cache/replica-cache.ts";
import { createWaiters } from "./core/claims/waiters.ts";
import { type Config, redactedConfig, withCurrentUrls } from "./core/config/config.ts";
import { isSkewed } from "./core/domain/clock-offset.ts";
import { createDatabaseClockWatch } from "./core/domain/database-clock.ts";
import type { Pool } from "./core/store/pool.ts";
import { findResolved } from "./core/store/records/read-records.ts";
import { shippedMigrations } from "./core/store/shipped-migrations.ts";
import { ensureTenant } from "./core/store/tenants/tenants.ts";
import type { BackgroundTask } from "./core/telemetry/background-metrics.ts";
import { createMetrics } from "./core/telemetry/metrics.ts";
import { TenantLabels } from "./core/telemetry/tenant-labels.ts";
import type { OpenTracing } from "./core/telemetry/tracing.ts";
import { createDenials } from "./core/transport/denials.ts";
import { openOpenApi } from "./core/transport/http/openapi.ts";
import { createManagementServer } from "./core/transport/management/server.ts";
import { createPipeline, type Pipeline } from "./core/transport/pipeline.ts";
import { configuredIssuer, configuredTls } from "./credentials.ts";
import { openDatabases } from "./databases.ts";
import { openShards, type Shards } from "./features/citus/shards.ts";
import { openConsole } from "./features/console/open.ts";
import { createSessions } from "./features/console/sessions.ts";
import { configuredEncryption, warnOfMissingKey } from "./features/encryption/encryption.ts";
import { openTracedParts } from "./features/tracing/traced-parts.ts";
import { type CallersPorts, createCallersPorts, listen } from "./ports.ts";
import { createLoadMeter, createReplicaDegradedStates, type StateSources } from "./replica-state.ts";
import { createRoutes } from "./routes.ts";
import { VERSION } from "./version.ts";

/** The time for the last spans to be exported, if calls took the whole time of the drain. */
const MIN_EXPORT_MS = 1000;

/** A replica of the service. */
export interface OncewardServer {
  /** Listens on all three ports, and then reports SERVING. */
  start(): Promise<Addresses>;
  /**
   * Drains: reports NOT_SERVING, waits until balancers notice, wakes waiting calls with UNAVAILABLE, sends
   * GOAWAY, lets other calls finish, and closes. Every acknowledged claim is in Postgres already.
   */
  stop(): Promise<void>;
}

/** The ports that a server listens on. */
export interface Addresses {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly managementPort: number;
}

/** Intervals and places that only tests change. */
export interface ServerTuning {
  /** How often the records that calls wait for are read. */
  readonly waiterTickMs?: number;
  /** The shortest interval between fetches of the issuer's keys because of a token with an unknown key. */
  readonly jwksCooldownMs?: number;
  /** How often the TLS files are checked for renewals. */
  readonly certificateLookMs?: number;
  /** How long equal denied calls are counted together. */
  readonly denialWindowMs?: number;
  /** The maximum age of cached API keys and tenants. */
  readonly credentialAgeMs?: number;
  /** How often the conditions of degraded states are looked at. */
  readonly degradedLookMs?: number;
  /** How often the replica stores that it is live. */
  readonly heartbeatMs?: number;
  /** Another directory with the console's page. */
  readonly consoleDir?: string;
}

/**
 * Creates all parts of a replica and connects them; `start` connects to the database and listens. The schema
 * must be up to date.
 *
 * Longer than other functions, because it is one list of parts, in the order in which they need each other.
 *
 * @param openTracing undefined: tracing is off.
 * @throws Error as `configuredTls`.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one list of parts.
export function createServer(
  config: Config,
  processLog: Logger,
  tuning: ServerTuning = {},
  openTracing?: OpenTracing,
): OncewardServer {
  const { waiterTickMs, jwksCooldownMs, certificateLookMs, credentialAgeMs, denialWindowMs } = tuning;
  const replica = { id: randomUUID(), version: VERSION };
  const log = processLog.child({ replica: replica.id });
  const tenantLabels = new TenantLabels();
  const metrics = createMetrics(VERSION, tenantLabels);
  const onFailed = (task: BackgroundTask) => (error: unknown) => {
    metrics.backgroundErrors.inc({ task });
    log.warn({ err: error, task }, "background task failed; retrying at the next interval");
  };
  const tls = configuredTls(config, {
    onRenewed: () => log.info("TLS uses the renewed files"),
    onFailed: onFailed("read_tls_files"),
    checkIntervalMs: certificateLookMs,
  });
  const traced = openTracedParts(openTracing, config, {
    instanceId: replica.id,
    version: VERSION,
    log,
    onExportFailed: () => metrics.backgroundErrors.inc({ task: "export_spans" }),
  });
  let replicaCache: ReplicaCache | undefined;
  let authenticator: Authenticator | undefined;
  const installation = createInstallationWatch({
    replicaId: replica.id,
    log,
    onDetected: () => metrics.installationChanges.inc(),
    onChanged: dropCopies,
  });
  const suspendWatch = createSuspendWatch({
    onResumed(suspendedMs) {
      dropCopies(installation.id());
      log.warn({ suspendedMs: Math.round(suspendedMs) }, "the machine was suspended; caches are dropped");
    },
  });
  const databases = openDatabases(config, { metrics, log, onConnected: installation.look });
  const { pool, administrationPool, heartbeatPool } = databases;
  const waiters = createWaiters({
    findResolved: (ids) => findResolved({ pool, shards }, ids),
    onCheckFailed: (error) =>
      log.warn({ err: error }, "reading the records of waiting calls failed; retrying at the next interval"),
    onFirstWaiter: (name) => replicaCache?.wakeChannel?.listen(name),
    onLastWaiterGone: (name) => replicaCache?.wakeChannel?.ignore(name),
    ...(waiterTickMs !== undefined && { checkEveryMs: waiterTickMs }),
  });
  let pipeline: Pipeline | undefined;
  let ports: CallersPorts | undefined;
  let newestMigration = "";
  let shards: Shards | undefined;
  const connections = () => ({
    grpc: ports?.grpc.connections() ?? 0,
    http: ports?.http.connections() ?? 0,
    management: management.connections(),
  });
  const databaseClock = createDatabaseClockWatch({
    onMoved(move) {
      metrics.databaseClockMoves.inc();
      log.error(move, "the database's clock was set: retention ends by its earlier course");
    },
    onAccepted: (move) => log.warn(move, "the database's clock is trusted again"),
  });
  const encryption = configuredEncryption(config, { metrics, log });
  const sources: StateSources = {
    redisBypassed: () => replicaCache?.redisBypassed() ?? false,
    schemaAhead: () => (background.lastBeaten()?.schemaVersion ?? "") > newestMigration,
    clockSkewed: () => isSkewed(background.lastBeaten()?.clock ?? { aheadMs: 0, uncertaintyMs: 0 }),
    databaseClockMoved: databaseClock.hasMoved,
    awayNodes: () => shards?.awayNodes() ?? 0,
    pool: pool.load,
    poolSize: config.ONCEWARD_POOL_SIZE,
    sweepLateS: () => background.sweepLateS(),
    callsInFlight: () => pipeline?.callsInFlight() ?? 0,
    connections: () => connections().grpc + connections().http,
    operations: metrics.operations,
  };
  const degraded = createReplicaDegradedStates(sources, { log, lookMs: tuning.degradedLookMs });
  const load = createLoadMeter(sources);
  const background = createBackground({
    config,
    pool,
    heartbeatPool,
    administrationPool,
    encryption,
    databaseClock,
    metrics,
    tenantLabels,
    log,
    replica,
    state: () => ({ degraded: degraded.reasons(), load: load() }),
    heartbeatMs: tuning.heartbeatMs,
    lookAtInstallation: installation.look,
    async readShards() {
      await shards?.refresh();
      await installation.lookAtRecords(administrationPool);
    },
    onSettled(name) {
      waiters.wake(name);
      replicaCache?.wakeChannel?.announce(name);
    },
    onFailed,
  });
  const { liveReplicas, totals, usage } = background;
  const admission = createAdmission({ totals, liveReplicas, onRefused: metrics.refusedByQuota });
  metrics.watch({
    pool: pool.load,
    waiters: waiters.count,
    liveReplicas,
    cacheBytes: () => replicaCache?.bytes() ?? 0,
    degraded: degraded.active,
    databaseClockMovedMs: databaseClock.movedMs,
    tlsExpiresInS: () => tls?.expiresInS() ?? new Map(),
    callsInFlight: sources.callsInFlight,
    connections,
    ambiguousRecords: background.ambiguousRecords,
  });
  const denials = createDenials(pool, log, denialWindowMs);
  let unready: readonly string[] = ["starting"];
  const management = createManagementServer({ metrics, unreadyReasons: () => unready, tls });

  /** Drops what was read from the database, and names copies after this installation. */
  function dropCopies(installationId: string): void {
    authenticator?.databaseChanged();
    replicaCache?.moveTo(installationId);
  }

  async function composePorts() {
    // As every first statement of a connection, this one follows a look at the installation (`onConnected`).
    await warnOfMissingKey(pool, encryption, log);
    const tracedPool = traced.pool(pool);
    shards = await openShards(tracedPool, {
      onUngrouped: (reason) =>
        log.warn({ reason }, "statements are not grouped by shard of Citus, and are slow"),
      onAway: ({ host, port }) => log.warn({ node: `${host}:${port}` }, "a node of Citus does not answer"),
      openNode: (node) => traced.pool(databases.openNode(node)),
    });
    const issuer = configuredIssuer(config, {
      log,
      onFailed: onFailed("load_jwks"),
      cooldownMs: jwksCooldownMs,
    });
    const sessions = config.ONCEWARD_CONSOLE
      ? createSessions({
          database: tracedPool,
          pepper: config.ONCEWARD_API_KEY_PEPPER,
          maxAgeMs: credentialAgeMs,
        })
      : undefined;
    authenticator = createAuthenticator(tracedPool, {
      sessions,
      peppers: configuredPeppers(config),
      operatorKey: parseApiKey(config.ONCEWARD_OPERATOR_KEY ?? ""),
      tokens: issuer?.tokens,
      anonymousTenant: await ensureAnonymousTenant(pool, config),
      maxAgeMs: credentialAgeMs,
      onKeyUsed: background.keyUse.note,
    });
    replicaCache = openReplicaCache({
      maxBytes: config.ONCEWARD_CACHE_MIB * 1024 * 1024,
      redisUrl: () => withCurrentUrls(config).REDIS_URL,
      installationId: installation.id(),
      secret: config.ONCEWARD_API_KEY_PEPPER,
      keyring: encryption.keyring,
      onSettled: waiters.wake,
      metrics: traced.metrics(metrics),
      log,
    });
    const parts = {
      config,
      log,
      pool: tracedPool,
      shards,
      administrationPool: traced.administrationPool(administrationPool),
      encryption,
      databaseClock,
      metrics,
      authenticator,
      admission,
      replicaCache,
      waiters: traced.waiters(waiters),
      tracing: traced.tracing,
      usage,
      installationId: installation.id,
      replicaState: { id: replica.id, degraded: degraded.reasons, lastBeaten: background.lastBeaten },
    };
    const defaultTimeoutMs = config.ONCEWARD_DEFAULT_TIMEOUT;
    pipeline = createPipeline({ authenticator, admission, denials, log, metrics, defaultTimeoutMs });
    return createCallersPorts(config, {
      routes: createRoutes(parts),
      pipeline: traced.pipeline(pipeline),
      tls,
      log,
      openApi: await openOpenApi(),
      console:
        sessions &&
        (await openConsole(config, {
          sessions,
          pipeline,
          authenticator,
          issuer: issuer?.people,
          log,
          dir: tuning.consoleDir,
        })),
    });
  }

  return {
    async start() {
      newestMigration = (await shippedMigrations()).at(-1) ?? "";
      ports = await composePorts();
      const addresses = {
        grpcPort: await listen(ports.grpc, config, "ONCEWARD_GRPC_PORT"),
        httpPort: await listen(ports.http, config, "ONCEWARD_HTTP_PORT"),
        managementPort: await listen(management, config, "ONCEWARD_MANAGEMENT_PORT"),
      };
      tls?.start();
      await background.start();
      degraded.start();
      suspendWatch.start();
      ports.grpc.setServing(true);
      unready = [];
      log.info({ ...addresses, version: VERSION, config: redactedConfig(config) }, "serving");
      return addresses;
    },

    async stop() {
      const served = unready.length === 0;
      unready = ["draining"];
      ports?.grpc.setServing(false);
      ports?.http.startDraining();
      log.info({ delayMs: config.ONCEWARD_DRAIN_DELAY }, "draining");
      await delay(served ? config.ONCEWARD_DRAIN_DELAY : 0);
      waiters.drain();
      const graceMs = config.ONCEWARD_DRAIN_TIMEOUT;
      const graceEndsAtMs = performance.now() + graceMs;
      await Promise.all([ports?.grpc.close(graceMs), ports?.http.close(graceMs), background.stopWork()]);
      replicaCache?.close();
      degraded.stop();
      suspendWatch.stop();
      await Promise.all([background.finish(), denials.settled()]);
      await Promise.all([databases.close(), shards?.close()]);
      await management.close();
      await tls?.stop();
      await traced.tracing?.close(Math.max(graceEndsAtMs - performance.now(), MIN_EXPORT_MS));
      log.info("stopped");
    },
  };
}

async function ensureAnonymousTenant(pool: Pool, config: Config): Promise<string | undefined> {
  const name = config.ONCEWARD_ANONYMOUS_TENANT;
  if (name !== undefined) await ensureTenant(pool, name);
  return name;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
