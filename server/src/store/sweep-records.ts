import type { Pool } from "./pool.ts";
import { STORED_BYTES } from "./tenant-totals.ts";

/** How many rows are due, `due_from` when to when, and for how long the most overdue one has waited. */
const findDueRecords = {
  name: "find_due_records",
  text: `
select count(*)::int as due,
       min(sweep_at)::text as due_from,
       max(sweep_at)::text as due_to,
       coalesce(date_part('epoch', now() - min(sweep_at)), 0) as lag_s
  from (select r.sweep_at
          from records r
         where r.sweep_at <= now()
         order by r.sweep_at
         limit $1::int) due`,
};

/** Whether row `r` is one of those found, and still due: whoever waited for a lock looks again. */
const DUE = "r.sweep_at between $1::timestamptz and $2::timestamptz";

/** How both statements end: what became of the `swept` rows, by namespace. */
const BY_NAMESPACE = `
select tenant_id, namespace, count(*)::int as records, sum(freed_bytes)::float8 as freed_bytes
  from swept
 group by tenant_id, namespace`;

/**
 * Deletes rows whose key retention ended two minutes ago: longer than any statement lasts that drew a fencing token
 * before.
 *
 * It takes them in the order of the index, in which a row is found and deleted in one visit; every other statement takes
 * rows in the order of their key. So it could stand across one that claims two of them anew, and gives way then: it waits
 * for a lock for half of what Postgres waits before it ends one side of a deadlock (`deadlock_timeout`, 1 s). No row leaves
 * the join before that is set, and it is set for this statement.
 */
const deleteEndedRecords = {
  name: "delete_ended_records",
  text: `
with bounded as materialized (
  select set_config('lock_timeout', '500ms', true) as lock_timeout
), swept as (
  delete from records r
   using bounded b
   where b.lock_timeout is not null
     and ${DUE}
     and r.expires_at + interval '2 minutes' <= now()
  returning r.tenant_id, r.namespace, ${STORED_BYTES} as freed_bytes
)
${BY_NAMESPACE}`,
};

/**
 * Puts rows off that something is left of, to when the next thing ends, and drops results whose own retention ended, in the
 * order of their key. An unfinished record may yet be completed with a result that ends sooner than its key.
 */
const putOffRecords = {
  name: "put_off_records",
  text: `
with input as materialized (
  select r.tenant_id, r.namespace, r.key,
         coalesce(octet_length(r.result_payload), 0) + coalesce(octet_length(r.result_metadata), 0) as result_bytes
    from records r
   where ${DUE}
   order by r.tenant_id, r.namespace, r.key
), swept as (
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
   where r.tenant_id = i.tenant_id
     and r.namespace = i.namespace
     and r.key = i.key
     and ${DUE}
     and r.expires_at + interval '2 minutes' > now()
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
  /** The same, of each namespace that anything was deleted or freed of. */
  readonly byNamespace: readonly SweptNamespace[];
}

/** What the sweep took of a namespace; it may come twice in a batch. */
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
  readonly lag_s: number;
}

interface SweptRow {
  readonly tenant_id: number;
  readonly namespace: string;
  readonly records: number;
  readonly freed_bytes: number;
}

/**
 * One bounded batch of the sweep, over at most `maxRows` rows, and those that are due at the same moment as the last of
 * them. Any number of replicas may run it at once: each repeats its conditions on the row as it finds it after waiting for
 * a lock, so that a key that was claimed anew meanwhile stays.
 *
 * @throws StatementFailed if somebody kept one of the rows locked, or waits for one in turn: nothing was deleted.
 */
export async function sweepBatch(pool: Pool, maxRows: number): Promise<Swept> {
  const [found] = await pool.run<DueRow>(findDueRecords, [maxRows]);
  if (found === undefined || found.due === 0) return NOTHING_DUE;
  const { due, lag_s: lagS } = found;
  const window = [found.due_from, found.due_to];
  const ended = await pool.run<SweptRow>(deleteEndedRecords, window);
  const deleted = countRecords(ended);
  const put = deleted === due ? [] : await pool.run<SweptRow>(putOffRecords, window);
  const byNamespace = [
    ...ended.map((row) => sweptNamespace(row, row.records)),
    ...put.filter((row) => row.freed_bytes > 0).map((row) => sweptNamespace(row, 0)),
  ];
  return { due, lagS, deleted, kept: countRecords(put), byNamespace };
}

const NOTHING_DUE: Swept = { due: 0, lagS: 0, deleted: 0, kept: 0, byNamespace: [] };

function countRecords(rows: readonly SweptRow[]): number {
  return rows.reduce((sum, { records }) => sum + records, 0);
}

function sweptNamespace(
  { tenant_id: tenantId, namespace, freed_bytes: freedBytes }: SweptRow,
  deleted: number,
): SweptNamespace {
  return { tenantId, namespace, deleted, freedBytes };
}
