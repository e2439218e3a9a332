import type { Feature } from "../../core/feature.ts";
import { requireCitus, runDistribution, runUndistribution } from "./commands.ts";
import { citusCheck } from "./doctor-check.ts";
import { openNodePool } from "./node-pool.ts";
import { openShards } from "./shards.ts";

/** Distributes the records over several servers. */
export const citus: Feature = {
  migrateOptions: [
    { name: "citus", check: requireCitus, run: runDistribution, withMigrations: true },
    { name: "undistribute", run: runUndistribution, withMigrations: false },
  ],
  checks: [citusCheck],
  openShards(options) {
    const { log, pool, traced } = options;
    return openShards(pool, {
      onUngrouped: (reason) =>
        log.warn({ reason }, "statements are not grouped by shard of Citus, and are slow"),
      onAway: ({ host, port }) => log.warn({ node: `${host}:${port}` }, "a node of Citus does not answer"),
      openNode: (node) => traced(openNodePool(options, node)),
    });
  },
};
