import type { Runner } from "../database/pool.ts";
import { askWorkers, readCitusState } from "./citus-state.ts";
import { DistributionRefused, onCitus, refuse, whyNoCoordinator } from "./coordinator-session.ts";
import { CREATE_CLOSED_MARK, DISTRIBUTE_CLOSED_MARK, WAIT_FOR_HELD_SHARDS } from "./shard-guard.ts";

/**
 * Copies all records back to the coordinator.
 *
 * Replicas may serve meanwhile. `undistribute_table` makes statements wait that Citus plans, and does not see those on
 * the tables of shards. Those statements therefore end before: while the shards are closed, replicas send statements
 * that Citus plans.
 * If the command is interrupted, running it again does what is missing, and `distributeRecords` reverses it.
 *
 * @returns a sentence for each thing that was done or found.
 * @throws DistributionRefused if this cannot be done.
 */
export function undistributeRecords(databaseUrl: string): Promise<readonly string[]> {
  return onCitus(databaseUrl, async (runner) => {
    const state = await readCitusState(runner);
    refuse(whyNoCoordinator(state));
    if (state.distributedBy === null) return ["The records are on the coordinator already."];
    await endStatementsOnShards(runner);
    await runner.run({ name: "undistribute_records", text: "select undistribute_table('records')" }, []);
    return ["Copied all records back to the coordinator."];
  });
}

/** Closes the shards: lets no statement on the table of a shard begin, and waits for those that run. */
async function endStatementsOnShards(runner: Runner): Promise<void> {
  await runner.run({ name: "create_closed_mark", text: CREATE_CLOSED_MARK }, []);
  await runner.run({ name: "distribute_closed_mark", text: DISTRIBUTE_CLOSED_MARK }, []);
  for (const { node, success, result } of await askWorkers(runner, WAIT_FOR_HELD_SHARDS)) {
    if (!success) throw new DistributionRefused(`Worker ${node} did not end its statements: ${result}`);
  }
}
