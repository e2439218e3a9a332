import type { Logger } from "pino";
import { HEARTBEAT_CONNECTIONS } from "../background/heartbeat.ts";
import { type Config, withCurrentUrls } from "../config/config.ts";
import { type OpenedPool, openPool, type PoolObserver, type PoolOptions } from "../database/pool.ts";
import {
  ADMINISTRATION_CONNECTIONS,
  createAdministrationPool,
} from "../records/engine/administration-pool.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/**
 * Opens the connections of a replica to Postgres, by what they are for. No kind waits for another's connections. They connect at
 * their first statement.
 */
export function openPools(
  config: Config,
  {
    metrics,
    log,
    onConnected,
    recordLoss,
    commits,
  }: { readonly metrics: Metrics; readonly log: Logger } & Required<
    Pick<PoolOptions, "onConnected" | "recordLoss" | "commits">
  >,
) {
  const observer = observePool(metrics, log);
  const open = (size: number, others: Pick<PoolOptions, "recordLoss" | "commits" | "commitsLocally">) =>
    openPool(
      {
        ...others,
        onConnected,
        databaseUrl: () => withCurrentUrls(config).DATABASE_URL,
        size,
        throughPgBouncer: config.ONCEWARD_PGBOUNCER,
      },
      observer,
    );
  // Not for the heartbeat, which looks at the database itself, and must not fail.
  const pool = open(config.ONCEWARD_POOL_SIZE, { recordLoss, commits });
  const administrationPool = createAdministrationPool(open(ADMINISTRATION_CONNECTIONS, { commits }));
  // Its own commits must not hang with those that it looks for. A failover that loses a heartbeat loses nothing that lasts.
  const heartbeatPool = open(HEARTBEAT_CONNECTIONS, { commitsLocally: true });
  return {
    /** For calls. */
    pool,
    /** For administration and background tasks. */
    administrationPool,
    /** For the heartbeat, so that a busy replica still counts as live. */
    heartbeatPool,
    /** Opens another pool, which reports to the same metrics. Its opener closes it. */
    openOther: (options: Omit<PoolOptions, "onConnected">): OpenedPool => openPool(options, observer),
    /** Closes the three pools, as Pool.close. */
    async close(limitMs?: number): Promise<void> {
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
