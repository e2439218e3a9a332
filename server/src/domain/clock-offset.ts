import { uptime } from "node:os";

/** How far this process' clock is ahead of the database's. */
export interface ClockOffset {
  /** Negative if it is behind. */
  readonly aheadMs: number;
  /** The largest error of the measurement: half of the time that it took. */
  readonly uncertaintyMs: number;
}

/** A reading of the database's clock between two readings of this process'. */
export interface ClockReading {
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly databaseMs: number;
}

/**
 * Returns the time since this machine started, in milliseconds: a clock that no one sets, and that, unlike
 * `performance.now`, advances while the machine is suspended.
 */
export function uptimeMs(): number {
  return uptime() * 1000;
}

/** Compares the clocks. */
export function clockOffset({ startedAtMs, endedAtMs, databaseMs }: ClockReading): ClockOffset {
  return {
    aheadMs: (startedAtMs + endedAtMs) / 2 - databaseMs,
    uncertaintyMs: Math.abs(endedAtMs - startedAtMs) / 2,
  };
}

/** A fifth of the tolerance for tokens' times; a synchronised clock is off by milliseconds. */
const MAX_OFFSET_MS = 2000;

/** Returns whether the clocks differ too much even if the measurement erred as much as it can. */
export function isSkewed({ aheadMs, uncertaintyMs }: ClockOffset): boolean {
  return Math.abs(aheadMs) - uncertaintyMs > MAX_OFFSET_MS;
}
