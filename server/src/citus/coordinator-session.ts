import { withConnection } from "../database/connection.ts";
import { hasCitus } from "../database/engine.ts";
import type { Runner } from "../database/pool.ts";
import type { CitusNodes } from "./citus-state.ts";

/** The oldest version of PostgreSQL on which the service runs, and the oldest for which there is Citus 13. */
const OLDEST_VERSION_NUM = 150_000;

/** Why the records cannot be moved to or from the workers, and what to do. */
export class DistributionRefused extends Error {
  override readonly name = "DistributionRefused";
}

/**
 * Runs `work` on a connection to the database of a Citus, without a limit of time: records are copied for as long as it takes.
 *
 * @throws DistributionRefused if the database has no Citus.
 */
export function onCitus<Answer>(
  databaseUrl: string,
  work: (runner: Runner) => Promise<Answer>,
): Promise<Answer> {
  return withConnection({ connectionString: databaseUrl }, async (client) => {
    const runner: Runner = {
      run: async ({ text }, parameters) => (await client.query(text, [...parameters])).rows,
    };
    if (!(await hasCitus(runner))) {
      refuse(
        "The database has no extension citus. Run on the coordinator and on each worker: create extension citus",
      );
    }
    return await work(runner);
  });
}

/** @throws DistributionRefused with the reason, if there is one. */
export function refuse(reason: string | undefined): void {
  if (reason !== undefined) throw new DistributionRefused(reason);
}

/** Returns why a database with Citus is not that of a coordinator with all its nodes; undefined: it is. */
export function whyNoCoordinator(nodes: CitusNodes): string | undefined {
  if (nodes.serverVersionNum < OLDEST_VERSION_NUM) return "The service needs PostgreSQL 15 or later.";
  if (!nodes.isCoordinator) return "This is the database of a worker. Give the URL of the coordinator's.";
  if (!nodes.knowsCoordinator) {
    return "The workers do not know their coordinator. Run: select citus_set_coordinator_host('HOST', PORT)";
  }
  if (nodes.workers.length === 0) return "Citus has no worker. Run: select citus_add_node('HOST', PORT)";
  if (nodes.unreachable.length > 0) {
    return `Not all nodes reach each other. Not reached: ${nodes.unreachable.join(", ")}.`;
  }
  return undefined;
}
