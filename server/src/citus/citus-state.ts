import type { Runner } from "../database/pool.ts";

/** What a database with the extension reports about the nodes of Citus. */
export interface CitusNodes {
  readonly serverVersionNum: number;
  readonly isCoordinator: boolean;
  /** Whether the coordinator has told the workers how to reach it. */
  readonly knowsCoordinator: boolean;
  /** `host:port` of each active worker. */
  readonly workers: readonly string[];
  /** `host:port` of the nodes that another node cannot reach. */
  readonly unreachable: readonly string[];
  readonly walLevel: string;
}

/** What a migrated database with the extension reports about Citus. */
export interface CitusState extends CitusNodes {
  /** The column by which records are distributed; null: they are not. */
  readonly distributedBy: string | null;
  /** The foreign keys from or to records. */
  readonly foreignKeys: readonly string[];
  readonly hasRecords: boolean;
}

/** A worker's answer to a command. */
export type WorkerAnswer = {
  /** `host:port`. */
  readonly node: string;
  readonly success: boolean;
  /** The first column of the first row, or the error. */
  readonly result: string;
};

/** A coordinator without a node is one, too, so citus_is_coordinator() does not serve: it is false then. */
const readNodes = {
  name: "read_citus_nodes",
  text: `
select current_setting('server_version_num')::int as "serverVersionNum",
       (select groupid = 0 from pg_dist_local_group) as "isCoordinator",
       exists (select from pg_dist_node where groupid = 0) as "knowsCoordinator",
       array(select nodename || ':' || nodeport from pg_dist_node
              where groupid <> 0 and isactive and noderole = 'primary' order by nodeid) as workers,
       current_setting('wal_level') as "walLevel"`,
};

const readDistribution = {
  name: "read_citus_distribution",
  text: `
select (select column_to_column_name(logicalrelid, partkey) from pg_dist_partition
         where logicalrelid = 'records'::regclass) as "distributedBy",
       array(select conname::text from pg_constraint
              where contype = 'f' and 'records'::regclass in (conrelid, confrelid)) as "foreignKeys"`,
};

const findRecord = { name: "find_any_record", text: "select 1 from records limit 1" };

/** The result is null for what an unreachable node would report about others. */
const checkNodes = {
  name: "check_citus_nodes",
  text: `
select distinct to_nodename || ':' || to_nodeport as node
  from citus_check_cluster_node_health()
 where not result
 order by node`,
};

/** Reads what a database with the extension reports about the nodes. Asks each node whether it reaches the others. */
export async function readCitusNodes(runner: Runner): Promise<CitusNodes> {
  const [nodes] = await runner.run<Omit<CitusNodes, "unreachable">>(readNodes, []);
  if (nodes === undefined) throw new Error("read_citus_nodes returned no row");
  const unreachable = await runner.run<{ node: string }>(checkNodes, []);
  return { ...nodes, unreachable: unreachable.map(({ node }) => node) };
}

/** Reads what a migrated database with the extension reports about Citus. */
export async function readCitusState(runner: Runner): Promise<CitusState> {
  const nodes = await readCitusNodes(runner);
  const [state] = await runner.run<Omit<CitusState, keyof CitusNodes | "hasRecords">>(readDistribution, []);
  if (state === undefined) throw new Error("read_citus_distribution returned no row");
  // With an unreachable node, reading records would fail, and the node is the finding that matters.
  const hasRecords = nodes.unreachable.length === 0 && (await runner.run(findRecord, [])).length > 0;
  return { ...nodes, ...state, hasRecords };
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
  return runner.run<WorkerAnswer>(commandWorkers, [statement]);
}
