import { CommandError } from "../commands/host.ts";
import { type Databases, onDatabase } from "../commands/schema.ts";
import type { Feature } from "../replica/feature.ts";
import { DistributionRefused } from "./coordinator-session.ts";
import { distributeRecords, requireCoordinator } from "./distribute-records.ts";
import { citusCheck } from "./doctor-check.ts";
import { openNodePool } from "./node-pool.ts";
import { openShards } from "./shards.ts";
import { undistributeRecords } from "./undistribute-records.ts";

/** Distributes the records over several servers. */
export const citus: Feature = {
  migrateOptions: [
    {
      name: "citus",
      check: forCommand(requireCoordinator),
      run: forCommand((url) => distributeRecords(url)),
      withMigrations: true,
    },
    { name: "undistribute", run: forCommand(undistributeRecords), withMigrations: false },
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

/** Returns `work` on the database of the configuration, with its refusals as errors of a command. */
function forCommand<Answer>(
  work: (url: string) => Promise<Answer>,
): (databases: Databases) => Promise<Answer> {
  return (databases) =>
    onDatabase(databases, (url) =>
      work(url).catch((error: unknown) => {
        throw error instanceof DistributionRefused ? new CommandError(error.message) : error;
      }),
    );
}
