import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { bigintArray } from "../../database/sql-arrays.ts";
import type { RecordJob, RetentionChange } from "./record-job.ts";
import { JOB_COLUMNS, type JobRow, parseJob } from "./record-jobs.ts";

/**
 * A clock that is set ahead ends no delay: replicas would still serve by the old policy. Delays are seconds. A job that starts
 * later than that was created while the clock was ahead, by a replica that did not know: it need not wait for so long.
 */
const IS_DUE = `(j.starts_at <= ${nowBy("$3")}
        or j.starts_at > now() + interval '600 s')`;

const takeJob = {
  name: "take_record_job",
  text: `
select ${JOB_COLUMNS}, j.resolution,
       coalesce(j.terms -> 'changes' -> 'byNamespace' -> coalesce(j.after_namespace, j.namespace),
                j.terms -> 'changes' -> 'others') as change
  from record_jobs j
 where j.finished_at is null
   and ${IS_DUE}
   and j.tenant_id > $1::int
   and j.id <> all ($2::bigint[])
   and not exists (select 1 from record_jobs earlier
                    where earlier.tenant_id = j.tenant_id and earlier.finished_at is null and j.kind <> 'DELETE'
                      and (earlier.kind = 'DELETE'
                           or (earlier.id < j.id and (earlier.kind = j.kind or (earlier.kind, j.kind) = ('RESOLVE', 'RESTAMP'))))
                   offset 0)
 order by j.tenant_id, j.id
 limit 1
   for update skip locked`,
};

type TakenRow = JobRow & { readonly resolution: string | null; readonly change: RetentionChange | null };

/** A job that a worker has taken. */
export interface TakenJob extends RecordJob {
  /** For `readJobResolution`. Undefined unless the job resolves. */
  readonly resolution: string | undefined;
  /** The change of retention in the namespace of `after`, or else of the job; undefined: none. */
  readonly change: RetentionChange | undefined;
}

/**
 * Locks a due job until the transaction ends, and returns it; undefined if there is none. The job is of the first tenant after
 * `afterTenantId`, or else of the first tenant of all, but not in `besides`, and no other transaction has locked it. If the
 * caller dies, its transaction ends.
 *
 * Of one tenant, jobs of one kind are taken in the order of their creation, and a re-stamping after the jobs that resolve: it may
 * end a record that they complete. Others do not wait, because a job fails for as long as its result cannot be decrypted. The
 * deletion of the tenant comes before all: it makes their changes void.
 *
 * @param latestMs as DatabaseClock.
 */
export async function takeRecordJob(
  transaction: Runner,
  afterTenantId: number,
  besides: readonly bigint[],
  latestMs?: number,
): Promise<TakenJob | undefined> {
  for (const after of afterTenantId === 0 ? [0] : [afterTenantId, 0]) {
    const [row] = await transaction.run<TakenRow>(takeJob, [after, bigintArray(besides), latestMs ?? null]);
    if (row !== undefined) {
      return { ...parseJob(row), resolution: row.resolution ?? undefined, change: row.change ?? undefined };
    }
  }
  return undefined;
}

const advanceJob = {
  name: "advance_record_job",
  text: `
update record_jobs set
  after_namespace = $2::text,
  after_key = $3::text,
  records_examined = records_examined + $4::int,
  records_changed = records_changed + $5::int,
  records_forgotten = records_forgotten + $6::int,
  finished_at = case when $7::boolean then now() end,
  resolution = case when not $7::boolean then resolution end
where id = $1::bigint`,
};

/** The work of one batch of a job. */
export interface JobProgress {
  /** As RecordJob.after. */
  readonly after: { readonly namespace: string; readonly key: string } | undefined;
  readonly examined: number;
  readonly changed: number;
  readonly forgotten: number;
  readonly finished: boolean;
}

/** Adds the progress of a batch, in the batch's transaction. */
export async function advanceRecordJob(
  transaction: Runner,
  id: bigint,
  progress: JobProgress,
): Promise<void> {
  const { after, examined, changed, forgotten, finished } = progress;
  const cursor = [after?.namespace ?? null, after?.key ?? null];
  await transaction.run(advanceJob, [String(id), ...cursor, examined, changed, forgotten, finished]);
}
