import pg from "pg";
import type { Pool, Runner, Statement } from "../../../server/src/database/pool.ts";

/** A node of a plan, as `explain (analyze, format json)` prints it. */
export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** A statement that ran, and its generic plan. */
export interface Explained {
  readonly statement: string;
  readonly plan: readonly PlanNode[];
}

/**
 * Returns the number of rows that the plan's nodes produced or discarded in all loops: a measure of the
 * statement's work.
 */
export function rowsProcessed(plan: readonly PlanNode[]): number {
  return plan.reduce((sum, node) => {
    const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
    return sum + node["Actual Loops"] * (node["Actual Rows"] + removed);
  }, 0);
}

/** Returns the blocks that a statement read or found in memory: a measure of its work that includes dead rows. */
export function blocksRead([root]: readonly PlanNode[]): number {
  return root === undefined ? 0 : root["Shared Hit Blocks"] + root["Shared Read Blocks"];
}

/** Plans are generic: the runs of a statement differ by the rows that they find. */
const EXPLAINED_RUNS = 3;
/** A page far from the first one shows whether the statement reads the rows before it. */
const EXPLAINED_EVERY = 50;

/**
 * Returns a pool that explains statements with their parameters before it runs them, and adds the plans to
 * `explained`: the first three runs of each statement, and every fiftieth.
 */
export function explainingPool(pool: Pool, explained: Explained[]): Pool {
  const runs = new Map<string, number>();
  const isExplained = ({ name }: Statement) => {
    const run = (runs.get(name) ?? 0) + 1;
    runs.set(name, run);
    return run <= EXPLAINED_RUNS || run % EXPLAINED_EVERY === 0;
  };
  return {
    ...pool,
    async run(statement, parameters, operations) {
      if (isExplained(statement)) {
        await pool.transaction((transaction) => explain(transaction, statement, parameters, explained));
      }
      return await pool.run(statement, parameters, operations);
    },
    transaction: (work) =>
      pool.transaction((transaction) =>
        work({
          async run(statement, parameters, operations) {
            if (isExplained(statement)) await explain(transaction, statement, parameters, explained);
            return await transaction.run(statement, parameters, operations);
          },
        }),
      ),
  };
}

/** Runs a statement in a transaction with its generic plan, and rolls back to a savepoint. */
async function explain(
  transaction: Runner,
  { name, text }: Statement,
  parameters: readonly unknown[],
  explained: Explained[],
): Promise<void> {
  const run = <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
    transaction.run<Row>({ name: "", text: sql }, values);
  await run("savepoint before_explain");
  await run(`prepare explained as ${text}`);
  const [prepared] = await run<{ types: string[] }>(
    "select parameter_types::text[] as types from pg_prepared_statements where name = 'explained'",
  );
  const types = prepared?.types ?? [];
  const texts = types.map((type, index) => `($${index + 1}::${type})::text as p${index + 1}`);
  const [values] = await run<Record<string, string | null>>(`select ${texts.join(", ")}`, parameters);
  const literals = types.map((type, index) => {
    const value = values?.[`p${index + 1}`];
    return `${value === null || value === undefined ? "null" : pg.escapeLiteral(value)}::${type}`;
  });
  const execute = literals.length === 0 ? "execute explained" : `execute explained (${literals.join(", ")})`;
  const [row] = await run<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(
    `explain (analyze, buffers, timing off, format json) ${execute}`,
  );
  if (row === undefined) throw new Error(`${name} was not explained`);
  explained.push({ statement: name, plan: nodesOf(row["QUERY PLAN"][0].Plan) });
  await run("rollback to savepoint before_explain");
  await run("deallocate explained");
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
