import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { createAdmission } from "./admission/admission.ts";
import { parseApiKey } from "./auth/api-key.ts";
import { type Authenticator, createAuthenticator } from "./auth/authenticate.ts";
import { createInstallationWatch } from "./background/installation-watch.ts";
import { createBackground } from "./background-tasks.ts";
import { openReplicaCache, type ReplicaCache } from "./cache/replica-cache.ts";
import { createWaiters } from "./claims/waiters.ts";
import { type Config, redactedConfig } from "./config/config.ts";
import { configuredTls, configuredTokens } from "./credentials.ts";
import { createDenials } from "./edge/denials.ts";
import { createGrpcServer } from "./edge/grpc/server.ts";
import { createHttpServer } from "./edge/http/server.ts";
import { createManagementServer } from "./edge/management/server.ts";
import { createPipeline } from "./edge/pipeline.ts";
import { createTransportBudgets } from "./edge/transport-budgets.ts";
import { createRoutes } from "./routes.ts";
import {
  ADMINISTRATION_CONNECTIONS,
  createAdministrationPool,
} from "./store/batching/administration-pool.ts";
import { openPool, type Pool, type PoolObserver } from "./store/pool.ts";
import { findResolved } from "./store/records/read-records.ts";
import { ensureTenant } from "./store/tenants/tenants.ts";
import { createMetrics, type Metrics } from "./telemetry/metrics.ts";
import { VERSION } from "./version.ts";

/** A replica of the service: every part of it, put together. */
export interface OncewardServer {
  /** Listens on all three ports, and says that it serves. */
  start(): Promise<Addresses>;
  /**
   * Drains: says NOT_SERVING, waits for balancers to notice, asks connections to leave, lets calls finish, wakes waiters
   * with UNAVAILABLE, and closes. Every claim that was acknowledged is in Postgres already.
   */
  stop(): Promise<void>;
}

/** The ports that a server listens on. */
export interface Addresses {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly managementPort: number;
}

/** What nobody needs to configure. */
export interface ServerTuning {
  /** How often the records that calls wait for are looked at. */
  readonly waiterTickMs?: number;
  /** How often a token with an unknown key may have its issuer asked for keys. */
  readonly jwksCooldownMs?: number;
  /** How often the files of TLS are looked at. */
  readonly certificateLookMs?: number;
  /** How long denied calls are counted together. */
  readonly denialWindowMs?: number;
  /** How old what is known of API keys and tenants may be. */
  readonly credentialAgeMs?: number;
}

/**
 * Composes a server; it connects and listens on `start`. The schema must be in place.
 *
 * @throws Error as `configuredTls`.
 */
export function createServer(
  config: Config,
  log: Logger,
  { waiterTickMs, jwksCooldownMs, certificateLookMs, credentialAgeMs, denialWindowMs }: ServerTuning = {},
): OncewardServer {
  const metrics = createMetrics(VERSION);
  const onFailed = (task: string) => (error: unknown) => {
    metrics.backgroundErrors.inc({ task });
    log.warn({ err: error, task }, "a background task failed; its next turn goes on");
  };
  const tls = configuredTls(config, {
    onRenewed: () => log.info("TLS goes on with renewed files"),
    onFailed: onFailed("read_tls_files"),
    lookEveryMs: certificateLookMs,
  });
  const replica = { id: randomUUID(), version: VERSION };
  let replicaCache: ReplicaCache | undefined;
  let authenticator: Authenticator | undefined;
  const installation = createInstallationWatch({
    replicaId: replica.id,
    log,
    onChanged(id) {
      authenticator?.databaseChanged();
      replicaCache?.moveTo(id);
    },
  });
  const openConnections = (size: number) =>
    openPool(
      {
        onConnected: installation.look,
        databaseUrl: config.DATABASE_URL,
        size,
        throughPgBouncer: config.ONCEWARD_PGBOUNCER,
      },
      observePool(metrics, log),
    );
  const pool = openConnections(config.ONCEWARD_POOL_SIZE);
  const administrationPool = createAdministrationPool(openConnections(ADMINISTRATION_CONNECTIONS));
  const waiters = createWaiters({
    findResolved: (ids) => findResolved(pool, ids),
    onLookFailed: (error) => log.warn({ err: error }, "looking for waiters failed; the next look goes on"),
    onFirstWaiter: (name) => replicaCache?.wakeChannel?.listen(name),
    onLastWaiterGone: (name) => replicaCache?.wakeChannel?.ignore(name),
    ...(waiterTickMs !== undefined && { tickMs: waiterTickMs }),
  });
  const degraded = (): Readonly<Record<string, boolean>> => ({
    redis_bypassed: replicaCache?.redisBypassed() ?? false,
  });
  const degradedReasons = () => Object.entries(degraded()).flatMap(([reason, is]) => (is ? [reason] : []));
  const background = createBackground({
    config,
    pool,
    administrationPool,
    metrics,
    log,
    replica,
    lookAtInstallation: installation.look,
    onFailed,
  });
  const { liveReplicas, totals, usage } = background;
  const admission = createAdmission({ totals, liveReplicas, onRefused: metrics.refusedByQuota });
  metrics.watch({
    pool: pool.load,
    waiters: waiters.count,
    liveReplicas,
    cacheBytes: () => replicaCache?.bytes() ?? 0,
    degraded,
  });
  const denials = createDenials(pool, log, denialWindowMs);
  let unready: readonly string[] = ["starting"];
  const management = createManagementServer({ metrics, unreadyReasons: () => unready, tls });

  async function composeTransports() {
    await installation.look(pool);
    authenticator = createAuthenticator(pool, {
      pepper: config.ONCEWARD_API_KEY_PEPPER,
      operatorKey: parseApiKey(config.ONCEWARD_OPERATOR_KEY ?? ""),
      tokens: configuredTokens(config, { log, onFailed: onFailed("load_jwks"), cooldownMs: jwksCooldownMs }),
      anonymousTenant: await ensureAnonymousTenant(pool, config),
      maxAgeMs: credentialAgeMs,
    });
    replicaCache = openReplicaCache({
      maxBytes: config.ONCEWARD_CACHE_MIB * 1024 * 1024,
      redisUrl: config.REDIS_URL,
      installationId: installation.id(),
      secret: config.ONCEWARD_API_KEY_PEPPER,
      onSettled: waiters.wake,
      metrics,
      log,
    });
    const parts = {
      config,
      pool,
      administrationPool,
      metrics,
      authenticator,
      admission,
      replicaCache,
      waiters,
      usage,
      installationId: installation.id,
      degradedReasons,
    };
    const routes = createRoutes(parts);
    const pipeline = createPipeline({
      authenticator,
      admission,
      denials,
      log,
      metrics,
      defaultTimeoutMs: config.ONCEWARD_DEFAULT_TIMEOUT,
    });
    const requestTimeoutMs = config.ONCEWARD_REQUEST_TIMEOUT;
    const connectionAgeMs = config.ONCEWARD_CONNECTION_AGE;
    const maxPerAddress = config.ONCEWARD_CONNECTIONS_PER_ADDRESS;
    const shared = {
      routes,
      pipeline,
      budgets: createTransportBudgets(),
      requestTimeoutMs,
      tls,
      maxPerAddress,
    };
    return {
      grpc: createGrpcServer({ ...shared, connectionAgeMs }),
      http: createHttpServer({ ...shared, log }),
    };
  }

  let transports: Awaited<ReturnType<typeof composeTransports>> | undefined;

  return {
    async start() {
      transports = await composeTransports();
      const addresses = {
        grpcPort: await listen(transports.grpc, config, "ONCEWARD_GRPC_PORT"),
        httpPort: await listen(transports.http, config, "ONCEWARD_HTTP_PORT"),
        managementPort: await listen(management, config, "ONCEWARD_MANAGEMENT_PORT"),
      };
      tls?.start();
      await background.start();
      transports.grpc.setServing(true);
      unready = [];
      log.info({ ...addresses, version: VERSION, config: redactedConfig(config) }, "serving");
      return addresses;
    },

    async stop() {
      const served = unready.length === 0;
      unready = ["draining"];
      transports?.grpc.setServing(false);
      transports?.http.startDraining();
      log.info({ delayMs: config.ONCEWARD_DRAIN_DELAY }, "draining");
      await delay(served ? config.ONCEWARD_DRAIN_DELAY : 0);
      waiters.drain();
      const graceMs = config.ONCEWARD_DRAIN_TIMEOUT;
      await Promise.all([
        transports?.grpc.close(graceMs),
        transports?.http.close(graceMs),
        background.stopWork(),
      ]);
      replicaCache?.close();
      await Promise.all([background.finish(), denials.settled()]);
      await Promise.all([pool.close(), administrationPool.close()]);
      await management.close();
      await tls?.stop();
      log.info("stopped");
    },
  };
}

interface Listener {
  listen(host: string, port: number): Promise<number>;
}

/** Listens, or says which variable to set. */
async function listen(
  listener: Listener,
  config: Config,
  variable: "ONCEWARD_GRPC_PORT" | "ONCEWARD_HTTP_PORT" | "ONCEWARD_MANAGEMENT_PORT",
): Promise<number> {
  const { [variable]: port } = config;
  const own = variable === "ONCEWARD_MANAGEMENT_PORT" ? config.ONCEWARD_MANAGEMENT_HOST : undefined;
  const host = own ?? config.ONCEWARD_HOST;
  try {
    return await listener.listen(host, port);
  } catch (cause) {
    throw new Error(`cannot listen on ${host} port ${port}: is it taken? ${variable} sets another one`, {
      cause,
    });
  }
}

async function ensureAnonymousTenant(pool: Pool, config: Config): Promise<string | undefined> {
  const name = config.ONCEWARD_ANONYMOUS_TENANT;
  if (name !== undefined) await ensureTenant(pool, name);
  return name;
}

function observePool(metrics: Metrics, log: Logger): PoolObserver {
  return {
    ran({ statement, operations, durationMs, failed }) {
      metrics.storeDuration.observe({ statement }, durationMs / 1000);
      metrics.batchSize.observe({ statement }, operations);
      if (failed) metrics.storeErrors.inc({ statement });
    },
    connectionLost(error) {
      metrics.connectionsLost.inc();
      log.warn({ err: error }, "a connection to Postgres broke");
    },
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
