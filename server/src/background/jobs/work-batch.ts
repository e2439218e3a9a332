import type { RecordJob } from "../../domain/record-job.ts";
import { changeFor } from "../../domain/retention-change.ts";
import { limitLocks } from "../../store/limit-locks.ts";
import type { Pool, Runner } from "../../store/pool.ts";
import { forgetPage, raiseCacheGeneration, removePage } from "../../store/records/forget-records.ts";
import type { PageOutcome, RecordPage } from "../../store/records/record-page.ts";
import { nextNamespace, restampPage } from "../../store/records/restamp-records.ts";
import { advanceRecordJob, type JobProgress, takeRecordJob } from "../../store/tenants/record-jobs.ts";
import { removeTenantBatch } from "../../store/tenants/remove-tenant.ts";

/** A batch that was done: of which job, and what it came to. */
export interface BatchDone {
  readonly job: RecordJob;
  readonly progress: JobProgress;
}

const NOTHING: PageOutcome = { examined: 0, changed: 0, forgotten: 0, lastKey: undefined };

/** Whose jobs are worked at next, and how many of their rows at once. */
export interface JobTurn {
  /** The tenant that had the last turn; 0: none. */
  readonly afterTenantId: number;
  /** Tenants that are passed over. */
  readonly besides: readonly number[];
  readonly limitOf: (tenantId: number) => number;
  /** Told of the tenant whose job was taken, before it is worked at. */
  onTaken(tenantId: number): void;
}

/**
 * Takes a job that is due, changes one page of its records, and writes down how far it came, all in one transaction: a
 * replica that dies in the middle leaves nothing half done, and another one goes on.
 *
 * @returns undefined if no job is due, or others work at all that are.
 */
export function workBatch(
  pool: Pick<Pool, "transaction">,
  { afterTenantId, besides, limitOf, onTaken }: JobTurn,
): Promise<BatchDone | undefined> {
  return pool.transaction(async (transaction) => {
    const job = await takeRecordJob(transaction, afterTenantId, besides);
    if (job === undefined) return undefined;
    onTaken(job.tenantId);
    // A deleted tenant's rows are claimed by no caller.
    if (job.work.kind !== "DELETE") await limitLocks(transaction);
    const progress = await advance(transaction, job, limitOf(job.tenantId));
    // Copies of what was changed must not be found any more; whoever reads anew gets what stands now.
    if (progress.changed > 0) await raiseCacheGeneration(transaction, job.tenantId);
    await advanceRecordJob(transaction, job.id, progress);
    return { job, progress };
  });
}

/** Changes the page behind the last one, in the same namespace, or in the next one that there is. */
async function advance(transaction: Runner, job: RecordJob, limit: number): Promise<JobProgress> {
  const { tenantId } = job;
  const namespace = job.after?.namespace ?? job.namespace ?? (await nextNamespace(transaction, tenantId, ""));
  if (namespace === undefined) {
    return { ...NOTHING, after: undefined, finished: await finish(transaction, job, limit) };
  }

  const page = { tenantId, namespace, afterKey: job.after?.key ?? "", limit };
  const { lastKey = page.afterKey, ...done } = await changePage(transaction, job, page);
  if (done.examined === limit) return { ...done, after: { namespace, key: lastKey }, finished: false };

  const next =
    job.namespace === undefined ? await nextNamespace(transaction, tenantId, namespace) : undefined;
  if (next === undefined) {
    return {
      ...done,
      after: { namespace, key: lastKey },
      finished: await finish(transaction, job, limit - done.examined),
    };
  }
  return { ...done, after: { namespace: next, key: "" }, finished: false };
}

/** Does what is left once every record was looked at; answers whether that was all. */
async function finish(transaction: Runner, { work, tenantId }: RecordJob, limit: number): Promise<boolean> {
  return work.kind !== "DELETE" || removeTenantBatch(transaction, tenantId, limit);
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
