import { createRepeating } from "../background/repeat.ts";
import type { Pool } from "../store/pool.ts";
import { addUsage, type UsageCount } from "../store/usage.ts";
import type { UsageMeter } from "./meter.ts";

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
  /** Sent, or to be sent next, under `seq`; it stays as it is until it is answered. */
  let chunk: readonly UsageCount[] = [];
  let rest: readonly UsageCount[] = [];

  async function flush(): Promise<void> {
    rest = [...rest, ...meter.take()];
    while (chunk.length > 0 || rest.length > 0) {
      if (chunk.length === 0) {
        chunk = rest.slice(0, MAX_COUNTS);
        rest = rest.slice(MAX_COUNTS);
      }
      await addUsage(pool, { replica, seq }, chunk);
      chunk = [];
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
