import type { Runner } from "../../database/pool.ts";
import type { Check, Observation } from "../findings.ts";

/** Postgres' counts of a table, since its statistics were last reset. */
interface TableCounts {
  readonly table: string;
  readonly liveRows: number;
  /** Versions of rows that no transaction needs, and that vacuum has not removed. */
  readonly deadRows: number;
  readonly updates: number;
  /** Updates that touched no index. */
  readonly heapOnlyUpdates: number;
}

const readCounts = {
  name: "read_table_counts",
  text: `
select relname as table, n_live_tup::numeric as "liveRows", n_dead_tup::numeric as "deadRows",
       n_tup_upd::numeric as updates, n_tup_hot_upd::numeric as "heapOnlyUpdates"
  from pg_stat_user_tables
 where schemaname = 'public'`,
};

/** Reads Postgres' counts of the service's tables. */
export async function readTableCounts(runner: Runner): Promise<readonly TableCounts[]> {
  return runner.run<TableCounts>(readCounts, []);
}

/** Fewer updates say little. */
const MIN_UPDATES = 10_000;
/** Nine completions in ten are heap-only on a table as the migrations make it. */
const MIN_HEAP_ONLY_SHARE = 0.7;
/** Autovacuum starts at a fifth of the rows; fewer dead rows than this cost nothing. */
const MAX_DEAD_SHARE = 0.5;
const MIN_DEAD_ROWS = 20_000;

/** Looks at the share of heap-only updates of records, and at dead rows of all tables. */
export const tablesCheck: Check = {
  name: "tables",
  examine: async ({ runner }) =>
    (await readTableCounts(runner)).flatMap((counts) => [
      ...judgeHeapOnlyShare(counts),
      ...judgeDeadRows(counts),
    ]),
};

function judgeHeapOnlyShare({ table, updates, heapOnlyUpdates }: TableCounts): readonly Observation[] {
  const share = heapOnlyUpdates / updates;
  if (table !== "records" || updates < MIN_UPDATES || share >= MIN_HEAP_ONLY_SHARE) return [];
  const summary = `${Math.round(share * 100)} % of ${updates} updates of records were heap-only; 90 % are usual.`;
  return [{ id: "hot_share_low", summary }];
}

function judgeDeadRows({ table, liveRows, deadRows }: TableCounts): readonly Observation[] {
  if (deadRows < MIN_DEAD_ROWS || deadRows <= MAX_DEAD_SHARE * liveRows) return [];
  const summary = `Table ${table} has ${deadRows} dead rows beside ${liveRows} live ones.`;
  return [{ id: "dead_rows_many", summary }];
}
