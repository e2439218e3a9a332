import type { Runner, Statement } from "./pool.ts";

/**
 * Deletes up to so many of a table's rows that are older than a retention, the oldest first. Rows that another replica is
 * deleting are left to it.
 */
function pruneStatement(table: string, instant: string, now = "now()"): Statement {
  return {
    name: `prune_${table}`,
    text: `
with pruned as (
  delete from ${table} where ctid = any (array(
    select p.ctid
      from ${table} p
     where ${instant} < ${now} - $1::float8 * interval '1 millisecond'
     order by ${instant}
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
  };
}

const STATEMENTS = {
  audit_events: {
    name: "prune_audit_events",
    text: "select prune_audit_events($1::float8 * interval '1 millisecond', $2::int) as pruned",
  },
  usage_hours: pruneStatement("usage_hours", "timezone('utc', p.hour)", "timezone('utc', now())"),
  record_jobs: pruneStatement("record_jobs", "p.finished_at"),
} as const satisfies Readonly<Record<string, Statement>>;

/** A table whose rows have a retention: audit events, hours of usage, finished record jobs. */
export type PrunedTable = keyof typeof STATEMENTS;

/** Deletes up to so many rows that are older than a retention, and answers how many: fewer means that no more are. */
export async function pruneRows(
  runner: Runner,
  table: PrunedTable,
  retentionMs: number,
  maxRows: number,
): Promise<number> {
  const [row] = await runner.run<{ pruned: number }>(STATEMENTS[table], [retentionMs, maxRows]);
  return row?.pruned ?? 0;
}
