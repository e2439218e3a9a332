import type { Runner } from "../../../core/store/pool.ts";

/** Postgres' counts of a table, since its statistics were last reset. */
export interface TableCounts {
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
select relname as table, n_live_tup::float8 as live_rows, n_dead_tup::float8 as dead_rows,
       n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as heap_only_updates
  from pg_stat_user_tables
 where schemaname = 'public'`,
};

interface CountsRow {
  readonly table: string;
  readonly live_rows: number;
  readonly dead_rows: number;
  readonly updates: number;
  readonly heap_only_updates: number;
}

/** Reads Postgres' counts of the service's tables. */
export async function readTableCounts(runner: Runner): Promise<readonly TableCounts[]> {
  const rows = await runner.run<CountsRow>(readCounts, []);
  return rows.map((row) => ({
    table: row.table,
    liveRows: row.live_rows,
    deadRows: row.dead_rows,
    updates: row.updates,
    heapOnlyUpdates: row.heap_only_updates,
  }));
}
