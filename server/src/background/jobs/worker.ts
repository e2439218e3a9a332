import type { Logger } from "pino";
import type { Statements } from "../../store/batching/administration-pool.ts";
import { countUnfinishedRecordJobs } from "../../store/tenants/record-jobs.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { createRepeating, type Repeating } from "../repeat.ts";
import { createJobTurns } from "./turns.ts";
import { workBatch } from "./work-batch.ts";

export interface JobWorkerOptions {
  readonly pool: Statements;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFailed: (error: unknown) => void;
}

/** Between two looks for a job. */
const INTERVAL_MS = 2000;
/** Between two looks that fail, at most. */
const MAX_BACKOFF_MS = 30_000;

/**
 * Carries out changes of many records, in the background, a batch of each tenant's in turn. Every replica does, and none is
 * the leader: a job is one worker's only as long as a transaction.
 */
export function createJobWorker({ pool, metrics, log, onFailed }: JobWorkerOptions): Repeating {
  const turns = createJobTurns();

  async function work(): Promise<boolean> {
    try {
      return await workOnce();
    } catch (error) {
      // Where no job could be taken the database is away: the next look comes after the interval.
      if (!turns.failed(performance.now())) throw error;
      onFailed(error);
      return true;
    }
  }

  async function workOnce(): Promise<boolean> {
    const done = await workBatch(pool, turns.next(performance.now()));
    if (done === undefined) {
      metrics.jobsUnfinished.set(await countUnfinishedRecordJobs(pool));
      return false;
    }
    turns.succeeded();
    const { job, progress } = done;
    const kind = job.work.kind.toLowerCase();
    metrics.jobRecords.inc({ kind, action: "examined" }, progress.examined);
    metrics.jobRecords.inc({ kind, action: "changed" }, progress.changed);
    if (progress.finished) log.info({ job: String(job.id), kind }, "a record job is done");
    return true;
  }

  return createRepeating({ intervalMs: INTERVAL_MS, maxBackoffMs: MAX_BACKOFF_MS, work, onFailed });
}
