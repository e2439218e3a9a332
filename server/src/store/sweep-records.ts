import type { Pool } from "./pool.ts";

/**
 * One bounded batch of the sweep: rows whose key retention ended are deleted, results whose own retention ended are
 * dropped, and rows that were visited too early (completed late, prolonged) are put off to when something is due.
 *
 * Any number of replicas may run it at once. Each repeats its conditions on the row as it finds it after waiting for a
 * lock, so that a key that was claimed anew meanwhile stays. It takes rows in the order of their key, as every other
 * statement does.
 *
 * A row goes two minutes after its end at the earliest: longer than any statement lasts that drew a fencing token
 * before.
 */
const sweepRecords = {
  name: "sweep_records",
  text: `
with due as materialized (
  select tenant_id, namespace, key
    from records
   where sweep_at <= now()
   order by sweep_at
   limit $1::int
), input as materialized (
  select * from due order by tenant_id, namespace, key
), deleted as (
  delete from records r
   using input i
   where r.tenant_id = i.tenant_id
     and r.namespace = i.namespace
     and r.key = i.key
     and r.sweep_at <= now()
     and r.expires_at + interval '2 minutes' <= now()
  returning 1
), kept as (
  update records r set
    sweep_at = case when r.result_expires_at > now() then r.result_expires_at
                    else r.expires_at + interval '2 minutes' end,
    result_payload = case when r.result_expires_at > now() then r.result_payload end,
    result_content_type = case when r.result_expires_at > now() then r.result_content_type end,
    result_metadata = case when r.result_expires_at > now() then r.result_metadata end
  from input i
   where r.tenant_id = i.tenant_id
     and r.namespace = i.namespace
     and r.key = i.key
     and r.sweep_at <= now()
     and r.expires_at + interval '2 minutes' > now()
  returning 1
)
select (select count(*) from due)::int as due,
       (select count(*) from deleted)::int as deleted,
       (select count(*) from kept)::int as kept`,
};

/** What one batch of the sweep did, in rows. */
export interface Swept {
  /** Looked at; fewer than asked for means that nothing more is due. */
  readonly due: number;
  readonly deleted: number;
  /** Put off, with or without dropping an expired result. */
  readonly kept: number;
}

/** Sweeps at most `maxRows` rows. */
export async function sweepBatch(pool: Pool, maxRows: number): Promise<Swept> {
  const [swept] = await pool.run<{ due: number; deleted: number; kept: number }>(sweepRecords, [maxRows]);
  if (swept === undefined) throw new Error("the sweep answered nothing");
  return swept;
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
