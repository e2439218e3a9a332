import type { Moment } from "./moment.ts";

/** How much longer than their retention records are kept where late keys are refused: the key may be young until then. */
export const LATE_KEY_GRACE_MS = 600_000;
/** Keys carry the wall clock, and histories the monotonic one, which drift apart while the first is adjusted. */
const WALL_CLOCK_TOLERANCE_MS = 1000;

/** Returns whether a key that was created then is older than its retention at the moment, by any reading of the clocks. */
export function isSurelyLate(createdAtMs: number, { clock, book, toleranceMs }: Moment): boolean {
  return clock.from > createdAtMs + book.policy.keyRetentionMs + WALL_CLOCK_TOLERANCE_MS + toleranceMs;
}

/** Returns whether a key may be refused: it may be older than its retention, or was created before a restore. */
export function mayBeLate(createdAtMs: number, { clock, book }: Moment): boolean {
  const isOld = clock.to >= createdAtMs + book.policy.keyRetentionMs - WALL_CLOCK_TOLERANCE_MS;
  return (
    isOld ||
    book.restores.some(
      ({ restoredFromMs, restoredToMs }) =>
        createdAtMs <= restoredToMs + WALL_CLOCK_TOLERANCE_MS && clock.to >= restoredFromMs,
    )
  );
}
