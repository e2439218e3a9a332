import type { Pool } from "./pool.ts";
import { STORED_BYTES } from "./tenant-totals.ts";

/**
 * The rows that are due, the most overdue first, in the order of their key: the order in which every statement takes
 * rows, so that none waits for a row while it holds one that another needs. For the same reason deleting and putting off
 * are two statements: one that did both would start over at the first key.
 */
const DUE = `
input as materialized (
  select tenant_id, namespace, key, sweep_at, result_bytes
    from (select r.tenant_id, r.namespace, r.key, r.sweep_at,
                 coalesce(octet_length(r.result_payload), 0) + coalesce(octet_length(r.result_metadata), 0)
                   as result_bytes
            from records r
           where r.sweep_at <= now()
           order by r.sweep_at
           limit $1::int) due
   order by tenant_id, namespace, key
)`;

/** The row `r` of input `i`, if it is still due: whoever waited for a lock looks again. */
const STILL_DUE = `
    r.tenant_id = i.tenant_id
    and r.namespace = i.namespace
    and r.key = i.key
    and r.sweep_at <= now()`;

/** How both statements end: what became of the `swept` rows by namespace, and at least one row. */
const BY_NAMESPACE = `
select due, lag_s, tenant_id, namespace, coalesce(records, 0) as records, coalesce(freed_bytes, 0) as freed_bytes
  from (select count(*)::int as due, coalesce(date_part('epoch', now() - min(sweep_at)), 0) as lag_s from input) looked_at
  left join (
    select tenant_id, namespace, count(*)::int as records, sum(freed_bytes)::float8 as freed_bytes
      from swept
     group by tenant_id, namespace
  ) grouped on true`;

/**
 * Deletes rows whose key retention ended two minutes ago: longer than any statement lasts that drew a fencing token
 * before.
 */
const deleteEndedRecords = {
  name: "delete_ended_records",
  text: `
with ${DUE}, swept as (
  delete from records r
   using input i
   where ${STILL_DUE}
     and r.expires_at + interval '2 minutes' <= now()
  returning r.tenant_id, r.namespace, ${STORED_BYTES} as freed_bytes
)
${BY_NAMESPACE}`,
};

/**
 * Puts rows off that something is left of, to when the next thing ends, and drops results whose own retention ended. An
 * unfinished record may yet be completed with a result that ends sooner than its key.
 */
const putOffRecords = {
  name: "put_off_records",
  text: `
with ${DUE}, swept as (
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
   where ${STILL_DUE}
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

interface SweptRow {
  readonly due: number;
  readonly lag_s: number;
  readonly tenant_id: number | null;
  readonly namespace: string | null;
  readonly records: number;
  readonly freed_bytes: number;
}

/**
 * One bounded batch of the sweep, over at most `maxRows` rows. Any number of replicas may run it at once: each repeats its
 * conditions on the row as it finds it after waiting for a lock, so that a key that was claimed anew meanwhile stays.
 */
export async function sweepBatch(pool: Pool, maxRows: number): Promise<Swept> {
  const ended = await pool.run<SweptRow>(deleteEndedRecords, [maxRows]);
  const { due, lag_s: lagS } = ended[0] ?? { due: 0, lag_s: 0 };
  const deleted = countRecords(ended);
  const put = deleted === due ? [] : await pool.run<SweptRow>(putOffRecords, [maxRows]);
  const byNamespace = [
    ...ended.flatMap((row) => sweptNamespace(row, row.records)),
    ...put.filter((row) => row.freed_bytes > 0).flatMap((row) => sweptNamespace(row, 0)),
  ];
  return { due, lagS, deleted, kept: countRecords(put), byNamespace };
}

function countRecords(rows: readonly SweptRow[]): number {
  return rows.reduce((sum, { records }) => sum + records, 0);
}

/** None for the row that only says how many were due. */
function sweptNamespace(row: SweptRow, deleted: number): readonly SweptNamespace[] {
  const { tenant_id: tenantId, namespace, freed_bytes: freedBytes } = row;
  return tenantId === null || namespace === null ? [] : [{ tenantId, namespace, deleted, freedBytes }];
}
