import { limitLocks } from "../limit-locks.ts";
import type { Pool, Statement } from "../pool.ts";
import { STORED_BYTES } from "../tenants/tenant-totals.ts";
import { byKey } from "./by-key.ts";

/**
 * How many rows are due, up to a limit, `due_from` when to when, whether more rows are due at the last of these moments than
 * the limit lets in, and for how long the most overdue row has waited.
 *
 * The rows' frame keeps PostgreSQL 15 from reading all that are due at one moment before it numbers the first.
 */
const findDueRecords = {
  name: "find_due_records",
  text: `
select (count(*) filter (where place <= $1::int))::int as due,
       min(sweep_at)::text as due_from,
       (max(sweep_at) filter (where place <= $1::int))::text as due_to,
       coalesce(max(sweep_at) filter (where place <= $1::int)
                  = max(sweep_at) filter (where place > $1::int), false) as is_cut,
       coalesce(date_part('epoch', now() - min(sweep_at)), 0) as lag_s
  from (select r.sweep_at, row_number() over (order by r.sweep_at rows unbounded preceding) as place
          from records r
         where r.sweep_at <= now()
         order by r.sweep_at
         limit $1::int + 1) due`,
};

/** How the statements end: what became of the `swept` rows, by namespace. */
const BY_NAMESPACE = `
select tenant_id, namespace, count(*)::int as records, sum(freed_bytes)::float8 as freed_bytes
  from swept
 group by tenant_id, namespace`;

/**
 * Whether the key retention of row `r` ended two minutes ago: longer than any statement lasts that drew a fencing token
 * before.
 */
const ENDED = "r.expires_at + interval '2 minutes' <= now()";

/**
 * Deletes the ended rows that are due between two moments.
 *
 * It takes them in the order of the index, in which a row is found and deleted in one visit; every other statement takes
 * rows in the order of their key. So it can stand across a statement that claims two of them again. It gives way then,
 * because it waits for a lock for less long (`limitLocks`) than Postgres waits before it ends one side of a deadlock
 * (`deadlock_timeout`, 1 s).
 */
const deleteEndedRecords = {
  name: "delete_ended_records",
  text: `
with swept as (
  delete from records r
   where r.sweep_at between $1::timestamptz and $2::timestamptz
     and ${ENDED}
  returning r.tenant_id, r.namespace, ${STORED_BYTES} as freed_bytes
)
${BY_NAMESPACE}`,
};

/** The most overdue rows up to a limit, `columns` of them, in the order of their key. */
function mostOverdue(columns: string): string {
  return `
input as materialized (
  select *
    from (select ${columns}
            from records r
           where r.sweep_at <= now()
           order by r.sweep_at
           limit $1::int) due
   order by tenant_id, namespace, key
)`;
}

/** Deletes the ended ones of so many rows, where a pair of moments would let more in. */
const deleteOverdueRecords = {
  name: "delete_overdue_records",
  text: `
with ${mostOverdue("r.tenant_id, r.namespace, r.key")}, swept as (
  delete from records r
   using input i
   where ${byKey()}
     and ${ENDED}
  returning r.tenant_id, r.namespace, ${STORED_BYTES} as freed_bytes
)
${BY_NAMESPACE}`,
};

/**
 * Puts so many rows off that something is left of, to when the next thing ends, and drops results whose own retention ended,
 * in the order of their key. An unfinished record may yet be completed with a result that ends sooner than its key. A row
 * that another sweep has put off meanwhile stays as it is; the sum keeps that condition from fitting the index.
 */
const putOffRecords = {
  name: "put_off_records",
  text: `
with ${mostOverdue(`r.tenant_id, r.namespace, r.key,
                 coalesce(octet_length(r.result_payload), 0)
                   + coalesce(octet_length(r.result_metadata), 0) as result_bytes`)}, swept as (
  update records r set
    sweep_at = case
      when r.state <> 2 then interval '2 minutes' + least(
        r.expires_at,
        greatest(r.lease_expires_at, now())
          + least(r.result_retention_s, r.failure_retention_s) * interval '1 second')
      when r.result_expires_at > now() and r.result_expires_at < r.expires_at then r.result_expires_at
      else r.expires_at + interval '2 minutes' end,
    result_payload = case when r.result_expires_at > now() then r.result_payload end,
    result_content_type = case when r.result_expires_at > now() then r.result_content_type end,
    result_metadata = case when r.result_expires_at > now() then r.result_metadata end
  from input i
   where ${byKey()}
     and r.sweep_at + interval '0' <= now()
     and not ${ENDED}
  returning r.tenant_id, r.namespace, case when r.result_payload is null then i.result_bytes else 0 end as freed_bytes
)
${BY_NAMESPACE}`,
};

/** What one batch of the sweep did, in rows. */
export interface Swept {
  /** Looked at; fewer than asked for means that nothing more is due. */
  readonly due: number;
  /** How long the most overdue of them had been waiting, in seconds; 0 if none was due. */
  readonly lagS: number;
  readonly deleted: number;
  /** Put off, with or without dropping an expired result. */
  readonly kept: number;
}

/** What a statement of the sweep took of a namespace. */
export interface SweptNamespace {
  readonly tenantId: number;
  readonly namespace: string;
  readonly deleted: number;
  /** Of results and checkpoints. */
  readonly freedBytes: number;
}

interface DueRow {
  readonly due: number;
  /** Postgres' own text, which has the microseconds; null if nothing is due. */
  readonly due_from: string | null;
  /** As `due_from`. */
  readonly due_to: string | null;
  readonly is_cut: boolean;
  readonly lag_s: number;
}

interface SweptRow {
  readonly tenant_id: number;
  readonly namespace: string;
  readonly records: number;
  readonly freed_bytes: number;
}

/**
 * Sweeps one batch of at most `maxRows` rows, however many are due at one moment. Any number of replicas may do so at once:
 * each statement repeats its conditions on the row as it finds it after waiting for a lock, so that a key that was claimed
 * again meanwhile stays. Each has a transaction and the time of `limitLocks`.
 *
 * @param onSwept is told what each statement took.
 * @throws Refusal RECORD_CONTENDED if another transaction kept one of the rows locked, or waits for one in turn, and
 *   DATABASE_UNAVAILABLE, for one if the rows took too long: the statement that failed changed nothing.
 */
export async function sweepBatch(
  pool: Pool,
  maxRows: number,
  onSwept: (byNamespace: readonly SweptNamespace[]) => void = () => {},
): Promise<Swept> {
  const [found] = await pool.run<DueRow>(findDueRecords, [maxRows]);
  if (found === undefined || found.due === 0) return NOTHING_DUE;
  const { due, lag_s: lagS } = found;
  const ended = found.is_cut
    ? await runLimited(pool, deleteOverdueRecords, [maxRows])
    : await runLimited(pool, deleteEndedRecords, [found.due_from, found.due_to]);
  onSwept(ended.map((row) => sweptNamespace(row, row.records)));
  const deleted = countRecords(ended);
  if (deleted >= due) return { due, lagS, deleted, kept: 0 };
  const put = await runLimited(pool, putOffRecords, [due - deleted]);
  onSwept(put.filter((row) => row.freed_bytes > 0).map((row) => sweptNamespace(row, 0)));
  return { due, lagS, deleted, kept: countRecords(put) };
}

const NOTHING_DUE: Swept = { due: 0, lagS: 0, deleted: 0, kept: 0 };

function runLimited(pool: Pool, statement: Statement, parameters: readonly unknown[]): Promise<SweptRow[]> {
  return pool.transaction(async (transaction) => {
    await limitLocks(transaction);
    return await transaction.run<SweptRow>(statement, parameters);
  });
}

function countRecords(rows: readonly SweptRow[]): number {
  return rows.reduce((sum, { records }) => sum + records, 0);
}

function sweptNamespace(
  { tenant_id: tenantId, namespace, freed_bytes: freedBytes }: SweptRow,
  deleted: number,
): SweptNamespace {
  return { tenantId, namespace, deleted, freedBytes };
}
