import { createRepeating } from "../../core/background/repeat.ts";
import { type DatabaseClock, UNCHECKED_CLOCK } from "../../core/domain/database-clock.ts";
import type { Pool } from "../../core/store/pool.ts";
import { addUsage, type UsageCount } from "./store/usage.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** Stores the meter's counts periodically. */
export interface UsageFlusher {
  start(): void;
  /** Stores the remaining counts. The meter must not count any more. */
  stop(): Promise<void>;
}

/** Maximum namespaces per statement. */
const MAX_COUNTS = 1000;

/**
 * Each flush has a sequence number, and the database adds a number once. A flush whose reply was lost is
 * repeated with the same number and counts, so that nothing is counted twice or lost.
 */
export function createUsageFlusher({
  pool,
  meter,
  replica,
  databaseClock = UNCHECKED_CLOCK,
  intervalMs,
  onFailed,
}: {
  readonly pool: Pool;
  readonly meter: UsageMeter;
  readonly replica: { readonly id: string; readonly version: string };
  readonly databaseClock?: Pick<DatabaseClock, "latestMs">;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
}): UsageFlusher {
  let seq = 1;
  /**
   * The counts that were sent with `seq`. They do not change until the flush succeeds; the meter collects new
   * ones.
   */
  let sent: readonly UsageCount[] = [];

  async function flush(): Promise<void> {
    // Counts that are added from here on wait for the next flush.
    let left = sent.length + meter.size();
    while (left > 0) {
      if (sent.length === 0) sent = meter.take(MAX_COUNTS);
      await addUsage(pool, { replica, seq }, sent, databaseClock.latestMs());
      left -= sent.length;
      sent = [];
      seq++;
    }
  }

  const flushes = createRepeating({ intervalMs, work: flush, onFailed });
  return {
    start: flushes.start,
    async stop() {
      await flushes.stop();
      await flush().catch(onFailed);
    },
  };
}
