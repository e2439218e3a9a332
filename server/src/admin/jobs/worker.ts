import { createRepeating, type Repeating } from "../../background/repeat.ts";
import type { CoreParts } from "../../core-parts.ts";
import type { Runner } from "../../database/pool.ts";
import type { Statements } from "../../records/engine/administration-pool.ts";
import type { RecordValues } from "../../records/engine/record-values.ts";
import { recordName } from "../../records/record.ts";
import { createJobScheduler } from "./scheduler.ts";
import { workBatch } from "./work-batch.ts";

/** Delay between two searches for a job. */
const INTERVAL_MS = 2000;
/** Maximum delay between two searches that fail. */
const MAX_BACKOFF_MS = 30_000;

/**
 * Works on record jobs, changes of many records, in the background, one batch at a time and tenants in turn.
 * Every replica does so without a leader: a worker owns a job only for the length of a transaction.
 */
export function createJobWorker(
  options: Pick<CoreParts, "databaseClock" | "metrics" | "log" | "onSettled"> & {
    readonly pool: Statements;
    readonly encryption: RecordValues;
    readonly onFailed: (error: unknown) => void;
    readonly forgetKeys?: CoreParts["forgetKeys"];
    readonly intervalMs?: number;
  },
): Repeating {
  const { pool, encryption, databaseClock, metrics, log, onFailed, onSettled } = options;
  const { intervalMs = INTERVAL_MS, forgetKeys } = options;
  const scheduler = createJobScheduler();

  async function work(): Promise<boolean> {
    try {
      return await workOnce();
    } catch (error) {
      // Without a job the database is unavailable: the next attempt comes after the interval.
      if (!scheduler.failed(performance.now())) throw error;
      onFailed(error);
      return true;
    }
  }

  async function workOnce(): Promise<boolean> {
    const turn = scheduler.next(performance.now());
    const done = await workBatch(pool, turn, encryption, databaseClock, forgetKeys);
    if (done === undefined) {
      metrics.jobsUnfinished.set(await countUnfinishedRecordJobs(pool));
      return false;
    }
    scheduler.succeeded();
    const { job, progress, settled } = done;
    for (const id of settled) onSettled(recordName(id));
    const kind = job.work.kind.toLowerCase();
    metrics.jobRecords.inc({ kind, action: "examined" }, progress.examined);
    metrics.jobRecords.inc({ kind, action: "changed" }, progress.changed);
    if (progress.finished) log.info({ job: String(job.id), kind }, "record job finished");
    return true;
  }

  return createRepeating({ intervalMs, maxBackoffMs: MAX_BACKOFF_MS, work, onFailed });
}

const countJobs = {
  name: "count_record_jobs",
  text: `select count(*)::int as unfinished from record_jobs where finished_at is null`,
};

/** Counts the unfinished jobs of all tenants. */
export async function countUnfinishedRecordJobs(runner: Runner): Promise<number> {
  const [row] = await runner.run<{ unfinished: number }>(countJobs, []);
  return row?.unfinished ?? 0;
}
