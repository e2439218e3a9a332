import type { Runner } from "../pool.ts";

/** What a database says of Citus. */
export interface CitusState {
  readonly serverVersionNum: number;
  readonly isCoordinator: boolean;
  /** Whether the coordinator has told the workers how to reach it. */
  readonly knowsCoordinator: boolean;
  /** `host:port` of each active worker. */
  readonly workers: readonly string[];
  /** `host:port` of the nodes that another node cannot reach. */
  readonly unreachable: readonly string[];
  /** The column by which records are distributed; null: they are not. */
  readonly distributedBy: string | null;
  /** The foreign keys from or to records. */
  readonly foreignKeys: readonly string[];
  readonly hasRecords: boolean;
  readonly walLevel: string;
}

/** A worker's answer to a command. */
export interface WorkerAnswer {
  /** `host:port`. */
  readonly node: string;
  readonly success: boolean;
  /** The first column of the first row, or the error. */
  readonly result: string;
}

const readExtension = {
  name: "read_citus_extension",
  text: "select extversion as version from pg_extension where extname = 'citus'",
};

/** Returns whether the database has the extension citus. */
export async function hasCitus(runner: Runner): Promise<boolean> {
  return (await runner.run(readExtension, [])).length > 0;
}

const readState = {
  name: "read_citus_state",
  text: `
select current_setting('server_version_num')::int as "serverVersionNum",
       citus_is_coordinator() as "isCoordinator",
       exists (select from pg_dist_node where groupid = 0) as "knowsCoordinator",
       array(select nodename || ':' || nodeport from pg_dist_node
              where groupid <> 0 and isactive and noderole = 'primary' order by nodeid) as workers,
       (select column_to_column_name(logicalrelid, partkey) from pg_dist_partition
         where logicalrelid = 'records'::regclass) as "distributedBy",
       array(select conname::text from pg_constraint
              where contype = 'f' and 'records'::regclass in (conrelid, confrelid)) as "foreignKeys",
       current_setting('wal_level') as "walLevel"`,
};

const findRecord = { name: "find_any_record", text: "select 1 from records limit 1" };

/** The result is null for what a node that is away was to say of others. */
const checkNodes = {
  name: "check_citus_nodes",
  text: `
select distinct to_nodename || ':' || to_nodeport as node
  from citus_check_cluster_node_health()
 where not result
 order by node`,
};

/** Reads what a migrated database with the extension says of Citus. Asks each node whether it reaches the others. */
export async function readCitusState(runner: Runner): Promise<CitusState> {
  const [state] = await runner.run<Omit<CitusState, "unreachable" | "hasRecords">>(readState, []);
  if (state === undefined) throw new Error("read_citus_state returned no row");
  const unreachable = await runner.run<{ node: string }>(checkNodes, []);
  // Where a node is away, reading records would fail, and the node matters more.
  const hasRecords = unreachable.length === 0 && (await runner.run(findRecord, [])).length > 0;
  return { ...state, unreachable: unreachable.map(({ node }) => node), hasRecords };
}

const commandWorkers = {
  name: "command_citus_workers",
  text: `
select nodename || ':' || nodeport as node, success, result
  from run_command_on_workers($1::text)
 order by node`,
};

/** Runs a statement on the database of each worker, and returns their answers. */
export function askWorkers(runner: Runner, statement: string): Promise<readonly WorkerAnswer[]> {
  return runner.run<{ readonly node: string; readonly success: boolean; readonly result: string }>(
    commandWorkers,
    [statement],
  );
}
