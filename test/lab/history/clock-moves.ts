import type { ClockMove } from "./operation.ts";
import { type Range, range } from "./state.ts";

/**
 * How much earlier retention may end while the database's clock is ahead: the service allows a second, and its own
 * measurement may err by as much.
 */
const RETENTION_TOLERANCE_MS = 2000;

/** Returns how far the database's clock may have been ahead at some moment of an interval; 0: it was right. */
function mostAheadMs({ from, to }: Range, moves: readonly ClockMove[]): number {
  const during = moves.filter(({ fromMs, toMs }) => fromMs <= to && from <= toMs);
  return Math.max(0, ...during.map(({ aheadMs }) => aheadMs));
}

/** Returns what the database's clock may have shown at a moment between two bounds. Leases follow it as it is. */
export function databaseClock(at: Range, moves: readonly ClockMove[]): Range {
  return range(at.from, at.to + mostAheadMs(at, moves));
}

/** Returns the same of the time by which a key may be granted again: retention does not follow a clock that was set. */
export function retentionClock(at: Range, moves: readonly ClockMove[]): Range {
  return range(at.from, at.to + Math.min(mostAheadMs(at, moves), RETENTION_TOLERANCE_MS));
}

/**
 * After two heartbeats, replicas that started while the clock was ahead see that it was set back, unless other faults keep
 * Postgres unreachable.
 */
const FOLLOWED_FOR_MS = 30_000;

/** Returns the same of the time by which `reclaim_within` has passed: a clock that was set back makes no claim younger. */
export function reclaimClock(at: Range, moves: readonly ClockMove[]): Range {
  const followed = moves.filter(({ fromMs, toMs }) => fromMs <= at.to && at.from <= toMs + FOLLOWED_FOR_MS);
  const aheadMs = Math.max(0, ...followed.map(({ retentionAheadMs = 0 }) => retentionAheadMs));
  return range(at.from, at.to + Math.max(mostAheadMs(at, moves), aheadMs));
}

/**
 * Returns the latest time that retention may have followed by then, of a record that was stamped at the earliest at
 * `sinceMs`: replicas that started while the clock was ahead follow it, up to a bound, and what they deleted stays deleted.
 */
export function retentionFollowedMs(sinceMs: number, untilMs: number, moves: readonly ClockMove[]): number {
  const followed = moves.map(({ fromMs, toMs, retentionAheadMs }) =>
    retentionAheadMs === undefined || untilMs < fromMs || toMs < sinceMs
      ? Number.NEGATIVE_INFINITY
      : Math.min(untilMs, toMs) + retentionAheadMs,
  );
  return Math.max(...followed);
}
