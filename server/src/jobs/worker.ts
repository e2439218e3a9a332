import type { Logger } from "pino";
import { createRepeating } from "../background/repeat.ts";
import type { Pool } from "../store/pool.ts";
import { countUnfinishedRecordJobs } from "../store/record-jobs.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { workBatch } from "./work-batch.ts";

/** Carries out changes of many records, in the background. */
export interface JobWorker {
  start(): void;
  /** Resolves once no statement of it runs any more. */
  stop(): Promise<void>;
}

export interface JobWorkerOptions {
  readonly pool: Pool;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFailed: (error: unknown) => void;
}

/** Between two looks for a job. */
const INTERVAL_MS = 2000;
/** Records per transaction: small, so that no lock is held for long. */
const BATCH_RECORDS = 1000;
/** Between two batches: claims go first. */
const PAUSE_MS = 20;

/** Every replica runs one, and none is the leader: a job is one worker's only as long as a transaction. */
export function createJobWorker({ pool, metrics, log, onFailed }: JobWorkerOptions): JobWorker {
  let stopping = false;

  async function workWhileThereIsWork(): Promise<void> {
    while (!stopping && (await workOnce())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    metrics.jobsUnfinished.set(await countUnfinishedRecordJobs(pool));
  }

  /** Whether there was anything to do. */
  async function workOnce(): Promise<boolean> {
    const done = await workBatch(pool, BATCH_RECORDS);
    if (done === undefined) return false;
    const { job, progress } = done;
    const kind = job.work.kind.toLowerCase();
    metrics.jobRecords.inc({ kind, action: "examined" }, progress.examined);
    metrics.jobRecords.inc({ kind, action: "changed" }, progress.changed);
    if (progress.finished) log.info({ job: String(job.id), kind }, "a record job is done");
    return true;
  }

  const looks = createRepeating({ intervalMs: INTERVAL_MS, work: workWhileThereIsWork, onFailed });
  return {
    start: looks.start,
    stop() {
      stopping = true;
      return looks.stop();
    },
  };
}
