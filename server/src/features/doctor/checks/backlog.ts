import type { Check } from "../check.ts";
import { type Backlog, readBacklog } from "../facts/backlog.ts";
import type { Observation } from "../findings.ts";

/** A sweep that keeps up is at most an interval late; this allows for a burst of records that end together. */
const MIN_SWEEP_LAG_S = 60;
const MAX_SWEEP_INTERVALS = 3;
/** A job changes at least some million records in this time. */
const MAX_JOB_AGE_S = 15 * 60;

/** Looks at how late the sweep and the record jobs are. */
export const backlogCheck: Check = {
  name: "backlog",
  needsPostgres: true,
  examine: async ({ config, runner }) =>
    judgeBacklog(await readBacklog(runner), config.ONCEWARD_SWEEP_INTERVAL / 1000),
};

/** Returns what is late, for sweeps in this interval. */
export function judgeBacklog(
  { sweepLagS, oldestJob }: Backlog,
  sweepIntervalS: number,
): readonly Observation[] {
  const observations: Observation[] = [];
  if (sweepLagS > Math.max(MIN_SWEEP_LAG_S, MAX_SWEEP_INTERVALS * sweepIntervalS)) {
    observations.push({
      id: "sweep_behind",
      summary: `The sweep is ${Math.round(sweepLagS)} s behind: a record has been due for so long.`,
    });
  }
  if (oldestJob !== undefined && oldestJob.ageS > MAX_JOB_AGE_S) {
    const { id, kind, tenantId, ageS, recordsExamined } = oldestJob;
    observations.push({
      id: "record_job_late",
      summary:
        `Record job ${id} (${kind}, tenant number ${tenantId}) has been due for ${Math.round(ageS / 60)} min ` +
        `and has examined ${recordsExamined} records.`,
    });
  }
  return observations;
}
