import { CommandError } from "../../core/commands/host.ts";
import { type Databases, onDatabase } from "../../core/commands/schema.ts";
import type { Feature } from "../../core/feature.ts";
import { DistributionRefused } from "./coordinator-session.ts";
import { distributeRecords, requireCoordinator } from "./distribute-records.ts";
import { citusCheck } from "./doctor-check.ts";
import { openNodePool } from "./node-pool.ts";
import { openShards } from "./shards.ts";
import { undistributeRecords } from "./undistribute-records.ts";

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
      onUnreachable: ({ host, port }) =>
        log.warn({ node: `${host}:${port}` }, "a node of Citus does not answer"),
      openNode: (node) => traced(openNodePool(options, node)),
    });
  },
};

/** Checks that the database, which may be empty, is that of a coordinator with all its nodes. @throws CommandError. */
function requireCitus(databases: Databases): Promise<void> {
  return onDatabase(databases, refusing(requireCoordinator));
}

/** Distributes the records over the workers. Returns what was done. @throws CommandError. */
function runDistribution(databases: Databases): Promise<readonly string[]> {
  return onDatabase(
    databases,
    refusing((url) => distributeRecords(url)),
  );
}

/** Copies the records back to the coordinator. Returns what was done. @throws CommandError. */
function runUndistribution(databases: Databases): Promise<readonly string[]> {
  return onDatabase(databases, refusing(undistributeRecords));
}

/** Returns `work` with its refusals as errors of a command. */
function refusing<Answer>(work: (url: string) => Promise<Answer>): (url: string) => Promise<Answer> {
  return async (url) => {
    try {
      return await work(url);
    } catch (error) {
      throw error instanceof DistributionRefused ? new CommandError(error.message) : error;
    }
  };
}
