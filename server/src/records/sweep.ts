import { limitLocks } from "../database/limit-locks.ts";
import { nowBy } from "../database/now-by.ts";
import type { Pool, Statement } from "../database/pool.ts";
import { STORED_BYTES, STORED_RESULT_BYTES } from "../database/tenants/tenant-totals.ts";
import { STATE } from "./engine/record-row.ts";
import { equalKeys, FENCING_MARGIN } from "./engine/record-sql.ts";

// The last parameter of each statement is the latest time that it may take for now.

/**
 * Counts the rows that are due, up to a limit, and returns the times between which they are due, whether more
 * rows are due at the last of these times than the limit includes, and for how long the most overdue row has
 * waited.
 *
 * The window's frame keeps PostgreSQL 15 from reading all rows that are due at one time before it numbers the
 * first.
 */
const findDueRecords = {
  name: "find_due_records",
  text: `
select (count(*) filter (where ordinal <= $1::int))::int as due,
       to_jsonb(min(sweep_at)) #>> '{}' as "dueFrom",
       to_jsonb(max(sweep_at) filter (where ordinal <= $1::int)) #>> '{}' as "dueTo",
       coalesce(max(sweep_at) filter (where ordinal <= $1::int)
                  = max(sweep_at) filter (where ordinal > $1::int), false) as "isCut",
       coalesce(extract(epoch from ${nowBy("$2")} - min(sweep_at)), 0) as "lagS"
  from (select r.sweep_at, row_number() over (order by r.sweep_at rows unbounded preceding) as ordinal
          from records r
         where r.sweep_at <= ${nowBy("$2")}
         order by r.sweep_at
         limit $1::int + 1) due`,
};

/**
 * What both deletions return of their rows, by namespace: the number, the bytes, and the keys that are sampled by the seed
 * $1, or are of forgotten records; no keys if the seed is null.
 */
const SWEPT_BY_NAMESPACE = `returning r.tenant_id, r.namespace,
    ${STORED_BYTES} as freed_bytes,
    r.key, r.state, r.first_claimed_at, r.expires_at
), totals as (
  select tenant_id, namespace, count(*)::int as records, sum(freed_bytes)::numeric as freed_bytes,
         array_agg(key) as keys, array_agg(state = ${STATE.forgotten}) as forgotten,
         array_agg(first_claimed_at) as claimed, array_agg(expires_at) as ended
    from swept
   group by tenant_id, namespace
)
select t.tenant_id as "tenantId", t.namespace, t.records, t.freed_bytes as "freedBytes",
       (select json_agg(json_build_object(
                 'key', e.key, 'firstClaimedAtMs', extract(epoch from e.claimed) * 1000,
                 'endedAtMs', extract(epoch from e.ended) * 1000, 'forgotten', e.forgotten))
          from unnest(t.keys, t.claimed, t.ended, t.forgotten) as e (key, claimed, ended, forgotten)
         where e.forgotten and $1::bigint is not null
            or hashtextextended(e.key collate "C", $1::bigint)
                 & ((1::bigint << coalesce(n.shift, 0)) - 1) = 0) as sampled
  from totals t
  left join insight_sample_shifts n on n.tenant_id = t.tenant_id and n.namespace = t.namespace and n.kind = 'key'`;

/**
 * Deletes the rows that are due between two times and whose retention ended FENCING_MARGIN_MS ago.
 *
 * It takes them in the order of the index, in which a row is found and deleted in one visit. Every other
 * statement takes rows in the order of their keys, so this one and a statement that claims two of the rows
 * again can wait for each other. Then this one fails, because its lock timeout (`limitLocks`) is shorter than
 * the time after which Postgres ends one side of a deadlock (`deadlock_timeout`, 1 s).
 */
const deleteEndedRecords = {
  name: "delete_ended_records",
  text: `
with swept as (
  delete from records r
   where r.sweep_at between $2::timestamptz and $3::timestamptz
     and r.expires_at <= ${nowBy("$4")} - ${FENCING_MARGIN}
  ${SWEPT_BY_NAMESPACE}`,
};

/**
 * Does the same for a limited number of the most overdue rows, in the order of their keys: for more rows that
 * are due at one time than a batch may hold.
 */
const deleteOverdueRecords = {
  name: "delete_overdue_records",
  text: `
with input as materialized (
  select *
    from (select r.tenant_id, r.namespace, r.key
            from records r
           where r.sweep_at <= ${nowBy("$3")}
           order by r.sweep_at
           limit $2::int) due
   order by tenant_id, namespace, key
), swept as (
  delete from records r
   using input i
   where ${equalKeys("r", "i")}
     and r.expires_at <= ${nowBy("$3")} - ${FENCING_MARGIN}
  ${SWEPT_BY_NAMESPACE}`,
};

/**
 * Postpones a limited number of the most overdue rows that may not be deleted yet, to when their next part
 * ends, and drops results whose own retention has ended. An unfinished record may still be completed with a
 * result that ends before its key.
 *
 * A row that another statement changed after it was read stays as it is, and so stays due. The time is computed where
 * the row is read, because an update on Citus allows no function of the time in a `case`. `coalesce` keeps the
 * condition on `sweep_at` from fitting the index.
 */
const putOffRecords = {
  name: "put_off_records",
  text: `
with input as materialized (
  select due.*,
         case
           when due.state <> ${STATE.completed} then ${FENCING_MARGIN} + least(
             due.expires_at,
             greatest(due.lease_expires_at, ${nowBy("$2")})
               + least(due.result_retention_s, due.failure_retention_s) * interval '1 second')
           when due.result_expires_at > ${nowBy("$2")} and due.result_expires_at < due.expires_at then due.result_expires_at
           else due.expires_at + ${FENCING_MARGIN} end as next_sweep_at,
         coalesce(due.result_expires_at > ${nowBy("$2")}, false) as keeps_result
    from (select r.tenant_id, r.namespace, r.key, r.state, r.fencing_token, r.sweep_at, r.expires_at, r.lease_expires_at,
                 r.result_expires_at, r.result_retention_s, r.failure_retention_s,
                 ${STORED_RESULT_BYTES} as result_bytes
            from records r
           where r.sweep_at <= ${nowBy("$2")}
           order by r.sweep_at
           limit $1::int) due
   order by tenant_id, namespace, key
), swept as (
  update records r set
    sweep_at = i.next_sweep_at,
    result_payload = case when i.keeps_result then r.result_payload end,
    result_content_type = case when i.keeps_result then r.result_content_type end,
    result_metadata = case when i.keeps_result then r.result_metadata end
  from input i
   where ${equalKeys("r", "i")}
     and coalesce(r.sweep_at, '-infinity') = i.sweep_at
     and r.fencing_token = i.fencing_token
     and r.state = i.state
     and r.expires_at = i.expires_at
     and r.result_expires_at is not distinct from i.result_expires_at
     and r.expires_at > ${nowBy("$2")} - ${FENCING_MARGIN}
  returning r.tenant_id, r.namespace, case when r.result_payload is null then i.result_bytes else 0 end as freed_bytes
)
select tenant_id as "tenantId", namespace, count(*)::int as records, sum(freed_bytes)::numeric as "freedBytes"
  from swept
 group by tenant_id, namespace`,
};

/** What one batch of the sweep did. */
export interface Swept {
  /** Rows examined. If fewer than asked for, no more rows are due. */
  readonly due: number;
  /** How long the most overdue row had waited, in seconds; 0 if none was due. */
  readonly lagS: number;
  readonly deleted: number;
  /** Rows postponed, with or without dropping an expired result. */
  readonly kept: number;
}

/** Receives what a sweep finds and does. */
export interface SweepObserver {
  /** Called with how long the most overdue record has been due, in seconds, before anything is deleted. */
  found(lagS: number): void;
  /** Called with what each statement deleted. */
  swept(byNamespace: readonly SweptNamespace[]): void;
}

const UNOBSERVED: SweepObserver = { found: () => {}, swept: () => {} };

/** What a statement of the sweep deleted from a namespace. */
export interface SweptNamespace {
  readonly tenantId: number;
  readonly namespace: string;
  readonly deleted: number;
  /** Bytes of results and checkpoints. */
  readonly freedBytes: number;
  /** Those of the deleted records whose keys are sampled. */
  readonly sampled: readonly SweptKey[];
}

/** The key of a deleted record. Instants are milliseconds since the Unix epoch. */
export interface SweptKey {
  readonly key: string;
  readonly firstClaimedAtMs: number;
  readonly endedAtMs: number;
  /** The record did not end but was forgotten. */
  readonly forgotten: boolean;
}

interface DueRow extends Pick<Swept, "due" | "lagS"> {
  /** In Postgres' text format, which has microseconds; null if nothing is due. `dueTo`, too. */
  readonly dueFrom: string | null;
  readonly dueTo: string | null;
  readonly isCut: boolean;
}

interface SweptRow extends Pick<SweptNamespace, "tenantId" | "namespace" | "freedBytes"> {
  readonly records: number;
  readonly sampled?: readonly SweptKey[] | null;
}

/**
 * Sweeps one batch of at most `maxRows` rows, however many are due at one time. Any number of replicas may do
 * so at once: a statement that waited for a row's lock checks its conditions again, so a key that was claimed
 * in between stays. Each statement has its own transaction with the time limits of `limitLocks`.
 *
 * @param sampleSeed selects the sampled keys (`createDepthOf`); undefined: none.
 * @param latestMs as DatabaseClock.
 * @throws Refusal RECORD_CONTENDED if another transaction held a lock on one of the rows, or waited for one
 *   in turn; DATABASE_UNAVAILABLE, also if the rows took too long. The statement that failed changed nothing.
 */
export async function sweepBatch(
  pool: Pool,
  maxRows: number,
  observer: SweepObserver = UNOBSERVED,
  sampleSeed?: bigint,
  latestMs?: number,
): Promise<Swept> {
  const seed = sampleSeed === undefined ? null : String(sampleSeed);
  const latest = latestMs ?? null;
  const [found] = await pool.run<DueRow>(findDueRecords, [maxRows, latest]);
  observer.found(found?.lagS ?? 0);
  if (found === undefined || found.due === 0) return { due: 0, lagS: 0, deleted: 0, kept: 0 };
  const { due, lagS, dueFrom, dueTo, isCut } = found;
  const ended = isCut
    ? await runLimited(pool, deleteOverdueRecords, [seed, maxRows, latest])
    : await runLimited(pool, deleteEndedRecords, [seed, dueFrom, dueTo, latest]);
  observer.swept(ended.map((row) => sweptNamespace(row, row.records)));
  const deleted = countRecords(ended);
  if (deleted >= due) return { due, lagS, deleted, kept: 0 };
  const postponed = await runLimited(pool, putOffRecords, [due - deleted, latest]);
  observer.swept(postponed.filter((row) => row.freedBytes > 0).map((row) => sweptNamespace(row, 0)));
  return { due, lagS, deleted, kept: countRecords(postponed) };
}

function runLimited(pool: Pool, statement: Statement, parameters: readonly unknown[]): Promise<SweptRow[]> {
  return pool.transaction(async (transaction) => {
    await limitLocks(transaction);
    return await transaction.run<SweptRow>(statement, parameters);
  });
}

function countRecords(rows: readonly SweptRow[]): number {
  return rows.reduce((sum, { records }) => sum + records, 0);
}

function sweptNamespace({ records: _, sampled, ...row }: SweptRow, deleted: number): SweptNamespace {
  return { ...row, deleted, sampled: sampled ?? [] };
}
