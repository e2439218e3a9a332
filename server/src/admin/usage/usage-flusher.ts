import { createRepeating, type Repeating } from "../../background/repeat.ts";
import type { Pool } from "../../database/pool.ts";
import { type DatabaseClock, UNCHECKED_CLOCK } from "../../domain/database-clock.ts";
import type { RecentRefusals } from "./recent-refusals.ts";
import type { RecentUse } from "./recent-use.ts";
import { storeRecentUse } from "./stored-recent-use.ts";
import { addUsage, type UsageCount } from "./stored-usage.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** What a replica counted in the last minute is dropped after so many flushes that it missed. */
const STALE_FLUSHES = 4;
/** Maximum namespaces per statement. */
const MAX_COUNTS = 1000;

/**
 * Stores the meter's counts periodically. When it stops, it stores the remaining ones: the meter must not count after that.
 *
 * Each flush has a sequence number, and the database adds a number once. A flush whose reply was lost is
 * repeated with the same number and counts, so that nothing is counted twice or lost.
 */
export function createUsageFlusher(options: {
  readonly pool: Pool;
  readonly meter: UsageMeter;
  readonly recent: RecentUse;
  readonly refusals: Pick<RecentRefusals, "endSlot" | "lastMinute">;
  readonly replica: { readonly id: string; readonly version: string };
  readonly databaseClock?: Pick<DatabaseClock, "latestMs">;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
}): Repeating {
  const {
    pool,
    meter,
    recent,
    refusals,
    replica,
    databaseClock = UNCHECKED_CLOCK,
    intervalMs,
    onFailed,
  } = options;
  let seq = 1;
  /**
   * The counts that were sent with `seq`. They do not change until the flush succeeds; the meter collects new
   * ones.
   */
  let sent: readonly UsageCount[] = [];
  let isStoredIdle = true;

  async function flush(): Promise<void> {
    // Counts that are added from here on wait for the next flush.
    let left = sent.length + meter.size();
    while (left > 0) {
      if (sent.length === 0) sent = meter.take(MAX_COUNTS);
      await addUsage(pool, { replica, seq }, sent, databaseClock.latestMs());
      recent.add(sent);
      left -= sent.length;
      sent = [];
      seq++;
    }
    await storeRecent();
  }

  /** Stores the last minute, unless it is as empty as what is stored. */
  async function storeRecent(): Promise<void> {
    recent.endSlot(Date.now());
    refusals.endSlot();
    const lastMinute = recent.lastMinute();
    const refused = refusals.lastMinute();
    const ended = recent.ended();
    const isIdle = Object.keys(lastMinute.counts).length + Object.keys(refused).length === 0;
    if (isIdle && isStoredIdle && ended.length === 0) return;
    await storeRecentUse(pool, {
      replicaId: replica.id,
      validForMs: STALE_FLUSHES * intervalMs,
      lastMinute,
      ended,
      refused,
      latestMs: databaseClock.latestMs(),
    });
    recent.forgetEnded();
    isStoredIdle = isIdle;
  }

  return createRepeating({ intervalMs, work: flush, turnsAtStop: 1, onFailed });
}
