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
import { createInboundBudget } from "./edge/inbound-budget.ts";
import { createManagementServer } from "./edge/management/server.ts";
import { createOutboundTotal } from "./edge/outbound-budget.ts";
import { createPipeline, type Pipeline } from "./edge/pipeline.ts";
import type { Route } from "./edge/route.ts";
import type { Tls } from "./edge/tls.ts";
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

/** Intervals that only tests change. */
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
}

/**
 * Creates all parts of a replica and connects them; `start` connects to the database and listens. The schema
 * must be up to date.
 *
 * Longer than other functions, because it is one list of parts, in the order in which they need each other.
 *
 * @throws Error as `configuredTls`.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one list of parts.
export function createServer(
  config: Config,
  log: Logger,
  { waiterTickMs, jwksCooldownMs, certificateLookMs, credentialAgeMs, denialWindowMs }: ServerTuning = {},
): OncewardServer {
  const metrics = createMetrics(VERSION);
  const onFailed = (task: string) => (error: unknown) => {
    metrics.backgroundErrors.inc({ task });
    log.warn({ err: error, task }, "background task failed; retrying at the next interval");
  };
  const tls = configuredTls(config, {
    onRenewed: () => log.info("TLS uses the renewed files"),
    onFailed: onFailed("read_tls_files"),
    checkIntervalMs: certificateLookMs,
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
    onCheckFailed: (error) =>
      log.warn({ err: error }, "reading the records of waiting calls failed; retrying at the next interval"),
    onFirstWaiter: (name) => replicaCache?.wakeChannel?.listen(name),
    onLastWaiterGone: (name) => replicaCache?.wakeChannel?.ignore(name),
    ...(waiterTickMs !== undefined && { checkEveryMs: waiterTickMs }),
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
    const defaultTimeoutMs = config.ONCEWARD_DEFAULT_TIMEOUT;
    const pipeline = createPipeline({ authenticator, admission, denials, log, metrics, defaultTimeoutMs });
    return createTransports(config, { routes: createRoutes(parts), pipeline, tls, log });
  }

  let transports: Transports | undefined;

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

interface TransportParts {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly tls: Tls | undefined;
  readonly log: Logger;
}

type Transports = ReturnType<typeof createTransports>;

/** Creates the two ports of callers, which share the pipeline and the budgets. */
function createTransports(config: Config, { log, ...parts }: TransportParts) {
  const shared = {
    ...parts,
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    requestTimeoutMs: config.ONCEWARD_REQUEST_TIMEOUT,
    maxPerAddress: config.ONCEWARD_CONNECTIONS_PER_ADDRESS,
  };
  return {
    grpc: createGrpcServer({ ...shared, connectionAgeMs: config.ONCEWARD_CONNECTION_AGE }),
    http: createHttpServer({ ...shared, log }),
  };
}

interface Listener {
  listen(host: string, port: number): Promise<number>;
}

/** @throws Error that names the variable of the port. */
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
    ran: metrics.statementRan,
    connectionLost(error) {
      metrics.connectionsLost.inc();
      log.warn({ err: error }, "lost a connection to Postgres");
    },
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
