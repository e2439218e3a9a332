import type { RecordJob } from "../domain/record-job.ts";
import { changeFor } from "../domain/retention-change.ts";
import { forgetPage, raiseCacheGeneration, removePage, removeTenant } from "../store/forget-records.ts";
import { limitLocks } from "../store/limit-locks.ts";
import type { Pool, Runner } from "../store/pool.ts";
import { advanceRecordJob, type JobProgress, takeRecordJob } from "../store/record-jobs.ts";
import type { PageOutcome, RecordPage } from "../store/record-page.ts";
import { nextNamespace, restampPage } from "../store/restamp-records.ts";

/** A batch that was done: of which job, and what it came to. */
export interface BatchDone {
  readonly job: RecordJob;
  readonly progress: JobProgress;
}

const NOTHING: PageOutcome = { examined: 0, changed: 0, forgotten: 0, lastKey: undefined };

/**
 * Takes a job that is due, changes one page of its records, and writes down how far it came, all in one transaction: a
 * replica that dies in the middle leaves nothing half done, and another one goes on.
 *
 * @returns undefined if no job is due, or others work at all that are.
 */
export function workBatch(pool: Pool, limit: number): Promise<BatchDone | undefined> {
  return pool.transaction(async (transaction) => {
    const job = await takeRecordJob(transaction);
    if (job === undefined) return undefined;
    // A deleted tenant's rows are claimed by no caller, and removing the tenant may take longer.
    if (job.work.kind !== "DELETE") await limitLocks(transaction);
    const progress = await advance(transaction, job, limit);
    // Copies of what was changed must not be found any more; whoever reads anew gets what stands now.
    if (progress.changed > 0) await raiseCacheGeneration(transaction, job.tenantId);
    if (progress.finished && job.work.kind === "DELETE") await removeTenant(transaction, job.tenantId);
    await advanceRecordJob(transaction, job.id, progress);
    return { job, progress };
  });
}

/** Changes the page behind the last one, in the same namespace, or in the next one that there is. */
async function advance(transaction: Runner, job: RecordJob, limit: number): Promise<JobProgress> {
  const { tenantId } = job;
  const namespace = job.after?.namespace ?? job.namespace ?? (await nextNamespace(transaction, tenantId, ""));
  if (namespace === undefined) return { ...NOTHING, after: undefined, finished: true };

  const page = { tenantId, namespace, afterKey: job.after?.key ?? "", limit };
  const { lastKey = page.afterKey, ...done } = await changePage(transaction, job, page);
  if (done.examined === limit) return { ...done, after: { namespace, key: lastKey }, finished: false };

  const next =
    job.namespace === undefined ? await nextNamespace(transaction, tenantId, namespace) : undefined;
  if (next === undefined) return { ...done, after: { namespace, key: lastKey }, finished: true };
  return { ...done, after: { namespace: next, key: "" }, finished: false };
}

async function changePage(transaction: Runner, job: RecordJob, page: RecordPage): Promise<PageOutcome> {
  switch (job.work.kind) {
    case "RESTAMP": {
      const change = changeFor(job.work.changes, page.namespace);
      return change === undefined ? NOTHING : restampPage(transaction, page, change);
    }
    case "FORGET":
      return forgetPage(transaction, page, job.createdAtMs);
    case "DELETE":
      return removePage(transaction, page);
  }
}
