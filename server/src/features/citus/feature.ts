import type { Feature } from "../../core/feature.ts";
import { requireCitus, runDistribution, runUndistribution } from "./commands.ts";
import { nodeUrl } from "./direct-route.ts";
import { citusCheck } from "./doctor-check.ts";
import { joinStatements } from "./joined-statements.ts";
import { MAX_IN_FLIGHT_BY_NODE } from "./shard-route.ts";
import { openShards } from "./shards.ts";

/** Distributes the records over several servers. */
export const citus: Feature = {
  migrateOptions: [
    { name: "citus", check: requireCitus, run: runDistribution, withMigrations: true },
    { name: "undistribute", run: runUndistribution, withMigrations: false },
  ],
  checks: [citusCheck],
  openShards({ databaseUrl, config, log, pool, openPool, traced }) {
    return openShards(pool, {
      onUngrouped: (reason) =>
        log.warn({ reason }, "statements are not grouped by shard of Citus, and are slow"),
      onAway: ({ host, port }) => log.warn({ node: `${host}:${port}` }, "a node of Citus does not answer"),
      openNode: config.ONCEWARD_CITUS_DIRECT
        ? (node) =>
            traced(
              joinStatements(
                openPool({
                  databaseUrl: () => nodeUrl(databaseUrl(), node),
                  size: MAX_IN_FLIGHT_BY_NODE,
                  throughPgBouncer: false,
                  onShards: true,
                }),
              ),
            )
        : undefined,
    });
  },
};
