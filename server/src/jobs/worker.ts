import type { Logger } from "pino";
import { createBatchSize } from "../background/batch-size.ts";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { Pool } from "../store/pool.ts";
import { countUnfinishedRecordJobs } from "../store/record-jobs.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { workBatch } from "./work-batch.ts";

export interface JobWorkerOptions {
  readonly pool: Pool;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFailed: (error: unknown) => void;
}

/** Between two looks for a job. */
const INTERVAL_MS = 2000;
/** Between two looks that fail, at most. */
const MAX_BACKOFF_MS = 30_000;
/** Records per transaction at most: few, so that no lock is held for long. */
const BATCH_RECORDS = 1000;

/**
 * Carries out changes of many records, in the background. Every replica does, and none is the leader: a job is one
 * worker's only as long as a transaction.
 */
export function createJobWorker({ pool, metrics, log, onFailed }: JobWorkerOptions): Repeating {
  const size = createBatchSize(BATCH_RECORDS);

  async function work(): Promise<boolean> {
    const done = await size.use((limit) => workBatch(pool, limit));
    if (done === undefined) {
      metrics.jobsUnfinished.set(await countUnfinishedRecordJobs(pool));
      return false;
    }
    const { job, progress } = done;
    const kind = job.work.kind.toLowerCase();
    metrics.jobRecords.inc({ kind, action: "examined" }, progress.examined);
    metrics.jobRecords.inc({ kind, action: "changed" }, progress.changed);
    if (progress.finished) log.info({ job: String(job.id), kind }, "a record job is done");
    return true;
  }

  return createRepeating({ intervalMs: INTERVAL_MS, maxBackoffMs: MAX_BACKOFF_MS, work, onFailed });
}
