import type { Runner } from "../../../core/store/pool.ts";

/** Background work that is due. */
export interface Backlog {
  /** How long the most overdue record has waited for the sweep, in seconds; 0 if none is due. */
  readonly sweepLagS: number;
  /** The due record job that has waited longest; undefined if none is due. */
  readonly oldestJob: OldestJob | undefined;
}

export interface OldestJob {
  readonly id: string;
  readonly tenantId: number;
  readonly kind: string;
  /** Seconds since the job was due. */
  readonly ageS: number;
  readonly recordsExamined: string;
}

const readOverdue = {
  name: "read_overdue_work",
  text: `
select (select coalesce(greatest(date_part('epoch', now() - r.sweep_at), 0), 0)
          from (select sweep_at from records order by sweep_at limit 1) r) as sweep_lag_s,
       j.id::text as job_id, j.tenant_id, j.kind, date_part('epoch', now() - j.starts_at) as job_age_s,
       j.records_examined::text as records_examined
  from (select 1) as always
  left join lateral (select * from record_jobs
                      where finished_at is null and starts_at <= now()
                      order by starts_at
                      limit 1) j on true`,
};

interface OverdueRow {
  readonly sweep_lag_s: number | null;
  readonly job_id: string | null;
  readonly tenant_id: number;
  readonly kind: string;
  readonly job_age_s: number;
  readonly records_examined: string;
}

/** Reads how late the sweep and the record jobs are. */
export async function readBacklog(runner: Runner): Promise<Backlog> {
  const [row] = await runner.run<OverdueRow>(readOverdue, []);
  if (row === undefined) throw new Error("read_overdue_work returned no row");
  const { job_id: id, tenant_id: tenantId, kind, job_age_s: ageS, records_examined: recordsExamined } = row;
  return {
    sweepLagS: row.sweep_lag_s ?? 0,
    oldestJob: id === null ? undefined : { id, tenantId, kind, ageS, recordsExamined },
  };
}
