import type { Logger } from "pino";
import { HEARTBEAT_CONNECTIONS } from "./core/background/heartbeat.ts";
import { type Config, withCurrentUrls } from "./core/config/config.ts";
import {
  ADMINISTRATION_CONNECTIONS,
  type AdministrationPool,
  createAdministrationPool,
} from "./core/store/batching/administration-pool.ts";
import {
  type OpenedPool,
  openPool,
  type Pool,
  type PoolObserver,
  type PoolOptions,
} from "./core/store/pool.ts";
import type { Metrics } from "./core/telemetry/metrics.ts";

/** The connections of a replica to Postgres, by what they are for. No kind waits for another's connections. */
export interface Pools {
  /** For calls. */
  readonly pool: Pool;
  /** For administration and background tasks. */
  readonly administrationPool: AdministrationPool;
  /** For the heartbeat, so that a busy replica still counts as live. */
  readonly heartbeatPool: Pool;
  /** Opens another pool, which reports to the same metrics. Its opener closes it. */
  openOther(options: Omit<PoolOptions, "onConnected">): OpenedPool;
  /** Closes the three pools, as Pool.close. */
  close(limitMs?: number): Promise<void>;
}

/** Opens the pools of a replica. They connect at their first statement. */
export function openPools(
  config: Config,
  {
    metrics,
    log,
    onConnected,
    recordLoss,
  }: {
    readonly metrics: Metrics;
    readonly log: Logger;
    /** As PoolOptions. */
    readonly onConnected: NonNullable<PoolOptions["onConnected"]>;
    /** As PoolOptions, for calls: the heartbeat looks at the database itself, and must not fail. */
    readonly recordLoss: NonNullable<PoolOptions["recordLoss"]>;
  },
): Pools {
  const observer = observePool(metrics, log);
  const open = (size: number, forCalls?: Pick<PoolOptions, "recordLoss">) =>
    openPool(
      {
        ...forCalls,
        onConnected,
        databaseUrl: () => withCurrentUrls(config).DATABASE_URL,
        size,
        throughPgBouncer: config.ONCEWARD_PGBOUNCER,
      },
      observer,
    );
  const pool = open(config.ONCEWARD_POOL_SIZE, { recordLoss });
  const administrationPool = createAdministrationPool(open(ADMINISTRATION_CONNECTIONS));
  const heartbeatPool = open(HEARTBEAT_CONNECTIONS);
  return {
    pool,
    administrationPool,
    heartbeatPool,
    openOther: (options) => openPool(options, observer),
    async close(limitMs) {
      await Promise.all([pool, administrationPool, heartbeatPool].map((each) => each.close(limitMs)));
    },
  };
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
