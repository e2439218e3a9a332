import { nowBy } from "./now-by.ts";
import type { Runner, Statement } from "./pool.ts";

/*
 * Each statement deletes up to $2 rows that are older than $1 milliseconds, the oldest first, and skips rows
 * that another replica is deleting. $3 is as `nowBy`.
 */
const NOW = nowBy("$3");

/** Returns the text that deletes a table's oldest rows by a time; `now` is the present on the same scale. */
function deleteOldest(table: string, time: string, now = NOW): string {
  return `
with pruned as (
  delete from ${table} where ctid = any (array(
    select p.ctid
      from ${table} p
     where ${time} < ${now} - $1::float8 * interval '1 millisecond'
     order by ${time}
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`;
}

/** As `deleteOldest`, by the expression that is indexed of hours and days. */
function deleteOldestInUtc(table: string, column: string): string {
  return deleteOldest(table, `timezone('utc', p.${column})`, `timezone('utc', ${NOW})`);
}

const STATEMENTS = {
  audit_events: {
    name: "prune_audit_events",
    // The function reads the clock itself.
    text: `select prune_audit_events($1::float8 * interval '1 millisecond' + (now() - ${NOW}), $2::int) as pruned`,
  },
  usage_hours: { name: "prune_usage_hours", text: deleteOldestInUtc("usage_hours", "hour") },
  insight_hours: { name: "prune_insight_hours", text: deleteOldestInUtc("insight_hours", "hour") },
  insight_late_hours: {
    name: "prune_insight_late_hours",
    text: deleteOldestInUtc("insight_late_hours", "hour"),
  },
  insight_key_days: { name: "prune_insight_key_days", text: deleteOldestInUtc("insight_key_days", "day") },
  // Each sampled key has a time of its own.
  insight_sampled_keys: {
    name: "prune_insight_sampled_keys",
    text: deleteOldest("insight_sampled_keys", "p.keep_until"),
  },
  record_jobs: { name: "prune_record_jobs", text: deleteOldest("record_jobs", "p.finished_at") },
  // Each session has a time of its own.
  console_sessions: { name: "prune_console_sessions", text: deleteOldest("console_sessions", "p.ends_at") },
} as const satisfies Readonly<Record<string, Statement>>;

/** A table whose rows have a retention. Of record jobs, only finished ones are deleted. */
export type PrunedTable = keyof typeof STATEMENTS;

/**
 * Deletes up to `maxRows` rows that are older than a retention. Returns their number: if fewer, no more are
 * left.
 *
 * @param latestMs as DatabaseClock.
 */
export async function pruneRows(
  runner: Runner,
  table: PrunedTable,
  retentionMs: number,
  maxRows: number,
  latestMs?: number,
): Promise<number> {
  const [row] = await runner.run<{ pruned: number }>(STATEMENTS[table], [
    retentionMs,
    maxRows,
    latestMs ?? null,
  ]);
  return row?.pruned ?? 0;
}
