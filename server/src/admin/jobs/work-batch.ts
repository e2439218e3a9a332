import type { ForgetKeys } from "../../core-parts.ts";
import { limitLocks } from "../../database/limit-locks.ts";
import type { Pool, Runner } from "../../database/pool.ts";
import { clockMoved, type DatabaseClock, UNCHECKED_CLOCK } from "../../domain/database-clock.ts";
import { PLAIN_VALUES, type RecordValues } from "../../records/engine/record-values.ts";
import type { RecordId } from "../../records/record.ts";
import { forgetPage, raiseCacheGeneration, removePage } from "../records/forget-records.ts";
import { nextNamespace, type PageOutcome, type RecordPage } from "../records/record-page.ts";
import { removeTenantBatch } from "../tenants/remove-tenant.ts";
import { advanceRecordJob, type JobProgress, type TakenJob, takeRecordJob } from "./job-queue.ts";
import { claimedBefore, type RecordJob } from "./record-job.ts";
import { resolveBatch } from "./resolve-batch.ts";
import { restampPage } from "./restamp-records.ts";

/** A finished batch: its job, and the job's progress. */
export interface BatchDone {
  readonly job: RecordJob;
  readonly progress: JobProgress;
  /** The records that were resolved: calls may wait for them. */
  readonly settled: readonly RecordId[];
}

type Batch = Omit<BatchDone, "job">;

interface BatchOptions {
  readonly limit: number;
  readonly forgetKeys: ForgetKeys;
  readonly encryption: RecordValues;
  readonly databaseClock: DatabaseClock;
}

/** Of a position before or after all records: no namespace has this name. */
const NO_NAMESPACE = "";
const NOTHING: PageOutcome = {
  examined: 0,
  changed: 0,
  forgotten: 0,
  ambiguousForgotten: 0,
  outdatedCopies: 0,
  lastKey: undefined,
};

/**
 * Selects the job to work on: the first one of the tenants after `afterTenantId`, or else the first of all
 * tenants.
 */
export interface JobSelection {
  /** The tenant whose job was taken last; 0: none. */
  readonly afterTenantId: number;
  readonly skippedJobIds: readonly bigint[];
  /** Returns the maximum rows of a job's batch. */
  readonly maxRowsOf: (jobId: bigint) => number;
  /** Called with the job that was taken, before the batch begins. */
  onTaken(job: Pick<RecordJob, "id" | "tenantId">): void;
}

/**
 * Takes a job that is due, changes one page of its records, and stores the job's progress, all in one
 * transaction: if the replica dies, the page is as before and another replica continues the job.
 *
 * @returns undefined if no job is due, or other workers have taken all that are.
 * @throws Refusal DATABASE_UNAVAILABLE while the database's clock is not trusted and the job resolves records.
 */
export function workBatch(
  pool: Pick<Pool, "transaction">,
  { afterTenantId, skippedJobIds, maxRowsOf, onTaken }: JobSelection,
  encryption: RecordValues = PLAIN_VALUES,
  databaseClock: DatabaseClock = UNCHECKED_CLOCK,
  forgetKeys: ForgetKeys = async () => {},
): Promise<BatchDone | undefined> {
  return pool.transaction(async (transaction) => {
    const job = await takeRecordJob(transaction, afterTenantId, skippedJobIds, databaseClock.latestMs());
    if (job === undefined) return undefined;
    onTaken(job);
    // No claim waits for the rows of a deleted tenant.
    if (job.work.kind !== "DELETE") await limitLocks(transaction);
    const batch = await change(transaction, job, {
      limit: maxRowsOf(job.id),
      encryption,
      databaseClock,
      forgetKeys,
    });
    await advanceRecordJob(transaction, job.id, batch.progress);
    return { job, ...batch };
  });
}

async function change(transaction: Runner, job: TakenJob, options: BatchOptions): Promise<Batch> {
  const { work, tenantId } = job;
  if (work.kind === "RESOLVE") {
    // It would skip records that have ended only by the clock that was set, and report that all are resolved.
    if (options.databaseClock.hasMoved()) throw clockMoved();
    return resolveBatch(transaction, job, work, options);
  }
  const progress = await advance(transaction, job, options);
  if (progress.outdatedCopies > 0) await raiseCacheGeneration(transaction, tenantId);
  return { progress, settled: [] };
}

/**
 * Changes the page after the last one, in the same namespace or, at its end, moves on to the next namespace.
 */
async function advance(
  transaction: Runner,
  job: TakenJob,
  options: BatchOptions,
): Promise<JobProgress & Pick<PageOutcome, "outdatedCopies">> {
  const { limit } = options;
  const { tenantId } = job;
  if (job.after?.namespace === NO_NAMESPACE) {
    return { ...NOTHING, ...(await finish(transaction, job, options, job.after.key)) };
  }
  // The first batch of a tenant's job only finds its first namespace.
  const namespace = job.after?.namespace ?? job.namespace ?? NO_NAMESPACE;
  const page = { tenantId, namespace, afterKey: job.after?.key ?? "", limit };
  const { lastKey = page.afterKey, ...done } = await changePage(transaction, job, page, options);
  if (done.examined === limit) return { ...done, after: { namespace, key: lastKey }, finished: false };

  const next =
    job.namespace === undefined ? await nextNamespace(transaction, tenantId, namespace) : undefined;
  if (next === undefined) {
    return { ...done, ...(await finish(transaction, job, { ...options, limit: limit - done.examined })) };
  }
  return { ...done, after: { namespace: next, key: "" }, finished: false };
}

/**
 * Does the rest of a job whose records were all examined.
 *
 * @param position as `removeTenantBatch`, of the deletion of a tenant.
 */
async function finish(
  transaction: Runner,
  { work, tenantId, namespace }: RecordJob,
  { limit, forgetKeys }: Pick<BatchOptions, "limit" | "forgetKeys">,
  position = "",
): Promise<Pick<JobProgress, "after" | "finished">> {
  // Records that ended before the job began have left tombstones.
  if (work.kind === "FORGET" && namespace !== undefined) await forgetKeys(transaction, tenantId, namespace);
  const next =
    work.kind === "DELETE" ? await removeTenantBatch(transaction, tenantId, limit, position) : undefined;
  return next === undefined
    ? { after: undefined, finished: true }
    : { after: { namespace: NO_NAMESPACE, key: next }, finished: false };
}

async function changePage(
  transaction: Runner,
  job: TakenJob,
  page: RecordPage,
  { databaseClock }: BatchOptions,
): Promise<PageOutcome> {
  switch (job.work.kind) {
    case "RESTAMP": {
      if (job.change === undefined) return NOTHING;
      return restampPage(transaction, page, job.change, claimedBefore(job), databaseClock.latestMs());
    }
    case "FORGET":
      return forgetPage(transaction, page, claimedBefore(job), databaseClock.latestMs());
    case "DELETE":
      return removePage(transaction, page);
    case "RESOLVE":
      throw new Error("a job that resolves has batches of its own");
  }
}
