import type { Pool } from "../store/pool.ts";
import { addUsage, type UsageCount } from "../store/tenants/usage.ts";
import { createRepeating } from "./repeat.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** Stores what the meter counts. */
export interface UsageFlusher {
  start(): void;
  /** Stores what is left; nothing may be counted any more. */
  stop(): Promise<void>;
}

export interface UsageFlusherOptions {
  readonly pool: Pool;
  readonly meter: UsageMeter;
  readonly replica: { readonly id: string; readonly version: string };
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
}

/** Namespaces per statement. */
const MAX_COUNTS = 1000;

/**
 * Counts leave the meter in flushes, each with a number under which the database takes it once: one whose reply was lost
 * is sent again as it was, and nothing is counted twice or dropped.
 */
export function createUsageFlusher({
  pool,
  meter,
  replica,
  intervalMs,
  onFailed,
}: UsageFlusherOptions): UsageFlusher {
  let seq = 1;
  /** Sent under `seq`; it stays as it is until it is answered, and the meter counts on meanwhile. */
  let sent: readonly UsageCount[] = [];

  async function flush(): Promise<void> {
    // What is counted from here on is for the next flush.
    let left = sent.length + meter.size();
    while (left > 0) {
      if (sent.length === 0) sent = meter.take(MAX_COUNTS);
      await addUsage(pool, { replica, seq }, sent);
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
