import type { Logger } from "pino";
import type { Pool } from "../store/pool.ts";
import { readSweepLagS, type SweptNamespace, sweepBatch } from "../store/sweep-records.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** Reclaims the space of what retention has ended, in the background. */
export interface Sweeper {
  start(): void;
  /** Resolves once no statement of it runs any more. */
  stop(): Promise<void>;
}

export interface SweeperOptions {
  readonly pool: Pool;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Between two sweeps, ±20 %, so that replicas don't march in step. */
  readonly intervalMs: number;
  /** Rows per statement: small, so that no lock is held for long. */
  readonly batchRows: number;
  /** Told what each batch took, for the tenants' totals. */
  readonly onSwept: (byNamespace: readonly SweptNamespace[]) => void;
}

/** Between two batches of one sweep: claims go first. */
const PAUSE_MS = 20;

/**
 * Every replica runs one, and none is the leader: a batch repeats its conditions on every row it takes, so that two at
 * once are merely wasteful.
 */
export function createSweeper({
  pool,
  metrics,
  log,
  intervalMs,
  batchRows,
  onSwept,
}: SweeperOptions): Sweeper {
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  function schedule(delayMs: number): void {
    if (stopping) return;
    timer = setTimeout(() => {
      running = run();
    }, delayMs);
  }

  async function run(): Promise<void> {
    let more = false;
    try {
      const swept = await sweepBatch(pool, batchRows);
      metrics.sweepRecords.inc({ action: "deleted" }, swept.deleted);
      metrics.sweepRecords.inc({ action: "kept" }, swept.kept);
      onSwept(swept.byNamespace);
      more = swept.due === batchRows;
      metrics.sweepLag.set(more ? await readSweepLagS(pool) : 0);
    } catch (error) {
      metrics.sweepErrors.inc();
      log.warn({ err: error }, "a sweep failed; the next one goes on");
    }
    schedule(more ? PAUSE_MS : intervalMs * (0.8 + 0.4 * Math.random()));
  }

  return {
    start: () => schedule(intervalMs * Math.random()),
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await running;
    },
  };
}
