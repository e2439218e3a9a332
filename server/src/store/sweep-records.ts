import type { Pool } from "./pool.ts";

/**
 * The rows that are due, the most overdue first, in the order of their key: the order in which every statement takes
 * rows, so that none waits for a row while it holds one that another needs. For the same reason deleting and putting off
 * are two statements: one that did both would start over at the first key.
 */
const DUE = `
input as materialized (
  select tenant_id, namespace, key
    from (select tenant_id, namespace, key from records where sweep_at <= now() order by sweep_at limit $1::int) due
   order by tenant_id, namespace, key
)`;

/** The row `r` of input `i`, if it is still due: whoever waited for a lock looks again. */
const STILL_DUE = `
    r.tenant_id = i.tenant_id
    and r.namespace = i.namespace
    and r.key = i.key
    and r.sweep_at <= now()`;

/**
 * Deletes rows whose key retention ended two minutes ago: longer than any statement lasts that drew a fencing token
 * before.
 */
const deleteEndedRecords = {
  name: "delete_ended_records",
  text: `
with ${DUE}, deleted as (
  delete from records r
   using input i
   where ${STILL_DUE}
     and r.expires_at + interval '2 minutes' <= now()
  returning 1
)
select (select count(*) from input)::int as due, (select count(*) from deleted)::int as deleted`,
};

/**
 * Puts rows off that something is left of, to when the next thing ends, and drops results whose own retention ended. An
 * unfinished record may yet be completed with a result that ends sooner than its key.
 */
const putOffRecords = {
  name: "put_off_records",
  text: `
with ${DUE}, kept as (
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
  returning 1
)
select count(*)::int as kept from kept`,
};

/** What one batch of the sweep did, in rows. */
export interface Swept {
  /** Looked at; fewer than asked for means that nothing more is due. */
  readonly due: number;
  readonly deleted: number;
  /** Put off, with or without dropping an expired result. */
  readonly kept: number;
}

/**
 * One bounded batch of the sweep, over at most `maxRows` rows. Any number of replicas may run it at once: each repeats its
 * conditions on the row as it finds it after waiting for a lock, so that a key that was claimed anew meanwhile stays.
 */
export async function sweepBatch(pool: Pool, maxRows: number): Promise<Swept> {
  const [ended] = await pool.run<{ due: number; deleted: number }>(deleteEndedRecords, [maxRows]);
  if (ended === undefined) throw new Error("the sweep answered nothing");
  if (ended.deleted === ended.due) return { ...ended, kept: 0 };
  const [put] = await pool.run<{ kept: number }>(putOffRecords, [maxRows]);
  return { ...ended, kept: put?.kept ?? 0 };
}

const readSweepLag = {
  name: "read_sweep_lag",
  text: `
select coalesce(date_part('epoch', now() - min(sweep_at)), 0) as lag_s
  from records
 where sweep_at <= now()`,
};

/** How long the most overdue row has been waiting for the sweep, in seconds; 0 if none is. */
export async function readSweepLagS(pool: Pool): Promise<number> {
  const [row] = await pool.run<{ lag_s: number }>(readSweepLag, []);
  return row?.lag_s ?? 0;
}
