import type { Runner } from "../../database/pool.ts";
import type { Check, Observation } from "../findings.ts";

const readOverdue = {
  name: "read_overdue_work",
  text: `
select (select coalesce(greatest(extract(epoch from now() - r.sweep_at), 0), 0)
          from (select sweep_at from records order by sweep_at limit 1) r) as "sweepLagS",
       j.id::text as id, j.tenant_id as "tenantId", j.kind, extract(epoch from now() - j.starts_at) as "ageS",
       j.records_examined::text as "recordsExamined"
  from (select 1) as always
  left join lateral (select * from record_jobs
                      where finished_at is null and starts_at <= now()
                      order by starts_at
                      limit 1) j on true`,
};

/** Background work that is due. */
interface Overdue {
  /** How long the most overdue record has waited for the sweep, in seconds; null without records. */
  readonly sweepLagS: number | null;
  /** The due record job that has waited longest; null if none is due. */
  readonly id: string | null;
  readonly tenantId: number;
  readonly kind: string;
  /** Seconds since the job was due. */
  readonly ageS: number;
  readonly recordsExamined: string;
}

/** Reads how late the sweep and the record jobs are. */
export async function readBacklog(runner: Runner): Promise<Overdue> {
  const [overdue] = await runner.run<Overdue>(readOverdue, []);
  if (overdue === undefined) throw new Error("read_overdue_work returned no row");
  return overdue;
}

/** A sweep that keeps up is at most an interval late; this allows for a burst of records that end together. */
const MIN_SWEEP_LAG_S = 60;
const MAX_SWEEP_INTERVALS = 3;
/** A job changes at least some million records in this time. */
const MAX_JOB_AGE_S = 15 * 60;

/** Looks at how late the sweep and the record jobs are. */
export const backlogCheck: Check = {
  name: "backlog",
  async examine({ config, runner }) {
    const { sweepLagS, id, tenantId, kind, ageS, recordsExamined } = await readBacklog(runner);
    const observations: Observation[] = [];
    const maxLagS = Math.max(MIN_SWEEP_LAG_S, (MAX_SWEEP_INTERVALS * config.ONCEWARD_SWEEP_INTERVAL) / 1000);
    if (sweepLagS !== null && sweepLagS > maxLagS) {
      observations.push({
        id: "sweep_behind",
        summary: `The sweep is ${Math.round(sweepLagS)} s behind: a record has been due for so long.`,
      });
    }
    if (id !== null && ageS > MAX_JOB_AGE_S) {
      observations.push({
        id: "record_job_late",
        summary:
          `Record job ${id} (${kind}, tenant number ${tenantId}) has been due for ${Math.round(ageS / 60)} min ` +
          `and has examined ${recordsExamined} records.`,
      });
    }
    return observations;
  },
};
