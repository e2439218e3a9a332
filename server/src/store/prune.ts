import type { Runner, Statement } from "./pool.ts";

/*
 * Each statement deletes up to $2 rows that are older than $1 milliseconds, the oldest first, and skips rows
 * that another replica is deleting.
 */

const pruneAuditEvents = {
  name: "prune_audit_events",
  text: "select prune_audit_events($1::float8 * interval '1 millisecond', $2::int) as pruned",
};

const pruneUsageHours = {
  name: "prune_usage_hours",
  text: `
with pruned as (
  delete from usage_hours where ctid = any (array(
    select p.ctid
      from usage_hours p
     where timezone('utc', p.hour) < timezone('utc', now()) - $1::float8 * interval '1 millisecond'
     order by timezone('utc', p.hour)
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const pruneInsightHours = {
  name: "prune_insight_hours",
  text: `
with pruned as (
  delete from insight_hours where ctid = any (array(
    select p.ctid
      from insight_hours p
     where timezone('utc', p.hour) < timezone('utc', now()) - $1::float8 * interval '1 millisecond'
     order by timezone('utc', p.hour)
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const pruneInsightLateHours = {
  name: "prune_insight_late_hours",
  text: `
with pruned as (
  delete from insight_late_hours where ctid = any (array(
    select p.ctid
      from insight_late_hours p
     where timezone('utc', p.hour) < timezone('utc', now()) - $1::float8 * interval '1 millisecond'
     order by timezone('utc', p.hour)
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

/** Each tombstone has a time of its own. */
const pruneTombstones = {
  name: "prune_insight_tombstones",
  text: `
with pruned as (
  delete from insight_tombstones where ctid = any (array(
    select p.ctid
      from insight_tombstones p
     where p.keep_until < now() - $1::float8 * interval '1 millisecond'
     order by p.keep_until
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const pruneInsightKeyDays = {
  name: "prune_insight_key_days",
  text: `
with pruned as (
  delete from insight_key_days where ctid = any (array(
    select p.ctid
      from insight_key_days p
     where timezone('utc', p.day) < timezone('utc', now()) - $1::float8 * interval '1 millisecond'
     order by timezone('utc', p.day)
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const pruneSampledKeys = {
  name: "prune_insight_sampled_keys",
  text: `
with pruned as (
  delete from insight_sampled_keys where ctid = any (array(
    select p.ctid
      from insight_sampled_keys p
     where p.claimed_at < now() - $1::float8 * interval '1 millisecond'
     order by p.claimed_at
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const pruneRecordJobs = {
  name: "prune_record_jobs",
  text: `
with pruned as (
  delete from record_jobs where ctid = any (array(
    select p.ctid
      from record_jobs p
     where p.finished_at < now() - $1::float8 * interval '1 millisecond'
     order by p.finished_at
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

/** Each session has a time of its own. */
const pruneConsoleSessions = {
  name: "prune_console_sessions",
  text: `
with pruned as (
  delete from console_sessions where ctid = any (array(
    select p.ctid
      from console_sessions p
     where p.ends_at < now() - $1::float8 * interval '1 millisecond'
     order by p.ends_at
     limit $2::int
       for update skip locked))
  returning 1
)
select count(*)::int as pruned from pruned`,
};

const STATEMENTS = {
  audit_events: pruneAuditEvents,
  usage_hours: pruneUsageHours,
  insight_hours: pruneInsightHours,
  insight_late_hours: pruneInsightLateHours,
  insight_tombstones: pruneTombstones,
  insight_key_days: pruneInsightKeyDays,
  insight_sampled_keys: pruneSampledKeys,
  record_jobs: pruneRecordJobs,
  console_sessions: pruneConsoleSessions,
} as const satisfies Readonly<Record<string, Statement>>;

/** A table whose rows have a retention. Of record jobs, only finished ones are deleted. */
export type PrunedTable = keyof typeof STATEMENTS;

/**
 * Deletes up to `maxRows` rows that are older than a retention. Returns their number: if fewer, no more are
 * left.
 */
export async function pruneRows(
  runner: Runner,
  table: PrunedTable,
  retentionMs: number,
  maxRows: number,
): Promise<number> {
  const [row] = await runner.run<{ pruned: number }>(STATEMENTS[table], [retentionMs, maxRows]);
  return row?.pruned ?? 0;
}
