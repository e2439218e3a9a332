import { type Runner, WORKER_SETTINGS } from "../database/pool.ts";
import { askWorkers, type CitusState, readCitusNodes, readCitusState } from "./citus-state.ts";
import { DistributionRefused, onCitus, refuse, whyNoCoordinator } from "./coordinator-session.ts";
import { CREATE_SHARD_GUARD, DISTRIBUTE_SHARD_GUARD, DROP_CLOSED_MARK } from "./shard-guard.ts";

/**
 * Shards for each worker that there is at the first distribution. Operations travel in batches of one shard, so fewer
 * shards make larger batches, and cheaper operations; four let the number of workers grow fourfold before shards must be
 * divided (`deploy/citus.md`).
 */
const SHARDS_PER_WORKER = 4;

/**
 * Checks that a database, which may be empty, is that of a coordinator whose nodes reach each other. Migrations must
 * not run before: the tables of a worker come from its coordinator.
 *
 * @throws DistributionRefused if it is not.
 */
export function requireCoordinator(databaseUrl: string): Promise<void> {
  return onCitus(databaseUrl, async (runner) => {
    refuse(whyNoCoordinator(await readCitusNodes(runner)));
  });
}

/**
 * Distributes the records of a migrated database over the workers of a Citus by their keys, and gives the workers'
 * databases the settings of the service's sessions. The other tables stay on the coordinator. It can run again: then it
 * gives the settings to workers that were added in between, and keeps the number of shards.
 *
 * Replicas may serve meanwhile: Citus copies existing records while they change, by logical replication. If the
 * connection breaks, Postgres finishes or undoes the copy, and running it again does what is missing.
 *
 * @param shards the number of shards; unset: it follows the number of workers.
 * @returns a sentence for each thing that was done or found.
 * @throws DistributionRefused if this cannot be done.
 */
export function distributeRecords(
  databaseUrl: string,
  { shards }: { readonly shards?: number } = {},
): Promise<readonly string[]> {
  return onCitus(databaseUrl, async (runner) => {
    const state = await readCitusState(runner);
    refuse(whyRefused(state));
    // Replicas may write to the shards as soon as there are some.
    await setUpWorkers(runner);
    await runner.run({ name: "create_shard_guard", text: CREATE_SHARD_GUARD }, []);
    await runner.run({ name: "distribute_shard_guard", text: DISTRIBUTE_SHARD_GUARD }, []);
    const done =
      state.distributedBy === null
        ? await distribute(runner, state, shards ?? SHARDS_PER_WORKER * state.workers.length)
        : "The records are already distributed by key.";
    await runner.run({ name: "drop_closed_mark", text: DROP_CLOSED_MARK }, []);
    return [
      done,
      `The databases of ${state.workers.length} workers have the settings of the service's sessions.`,
    ];
  });
}

/** Returns why the records of a database with Citus cannot be distributed; undefined: they can. */
export function whyRefused(state: CitusState): string | undefined {
  const reason = whyNoCoordinator(state);
  if (reason !== undefined) return reason;
  if (state.distributedBy === "key") return undefined;
  if (state.distributedBy !== null) {
    return `The records are distributed by ${state.distributedBy}. Run: onceward-server migrate --undistribute`;
  }
  if (state.foreignKeys.length > 0) {
    return `Foreign keys from or to the records must be dropped first: ${state.foreignKeys.join(", ")}.`;
  }
  if (state.hasRecords && state.walLevel !== "logical") {
    return "Existing records are copied by logical replication. Set wal_level = logical on the coordinator and restart it.";
  }
  return undefined;
}

/** Distributes the records. An empty table needs no copy, and so no `wal_level` of logical replication. */
async function distribute(
  runner: Runner,
  { hasRecords, workers }: CitusState,
  shards: number,
): Promise<string> {
  const way = hasRecords ? "create_distributed_table_concurrently" : "create_distributed_table";
  const text = `select ${way}('records', 'key', shard_count => $1::int)`;
  await runner.run({ name: "distribute_records", text }, [shards]);
  return `Distributed the records by key: ${shards} shards on ${workers.length} workers.`;
}

/**
 * Stores the settings in the workers' databases, because Citus runs statements there in sessions of its own, without
 * the settings of the session on the coordinator. Each worker changes its own database, which Citus 13.2 refuses to a session
 * that hands such changes on to the other nodes.
 */
async function setUpWorkers(runner: Runner): Promise<void> {
  const [database] = await runner.run<{ name: string }>(
    { name: "read_database_name", text: "select quote_ident(current_database()) as name" },
    [],
  );
  for (const [name, value] of Object.entries(WORKER_SETTINGS)) {
    const answers = await askWorkers(
      runner,
      `do $here$ begin
         set local citus.enable_ddl_propagation = off;
         alter database ${database?.name} set ${name} = '${value}';
       end $here$`,
    );
    const failed = answers.find(({ success }) => !success);
    if (failed !== undefined) {
      throw new DistributionRefused(`Worker ${failed.node} refused the setting ${name}: ${failed.result}`);
    }
  }
}
