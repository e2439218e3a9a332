import { type ClockReading, clockOffset, uptimeMs } from "./clock-offset.ts";
import { Refusal } from "./refusal.ts";

/**
 * The database's clock, which decides when retention ends, as the machines' uptimes confirm it. A clock that is set
 * forward by mistake would end retention early: keys would be granted again, and their records deleted.
 */
export interface DatabaseClock {
  /**
   * Returns the latest time that may be taken for now when something ends whose end cannot be taken back, in
   * milliseconds since the Unix epoch: ahead of a clock that was set back. Undefined: no bound is known.
   */
  latestMs(): number | undefined;
  /** Returns whether the clock is not trusted: it was set, or another live replica saw it move differently. */
  hasMoved(): boolean;
}

/** Compares the database's clock with this machine's uptime. */
export type DatabaseClockWatch = ReturnType<typeof createDatabaseClockWatch>;

/** A move of the clock, for the log. */
export interface ClockMove {
  readonly movedMs: number;
  readonly othersMovedMs: number;
}

/** Does not check the clock: for commands and tests, which run statements for a moment. */
export const UNCHECKED_CLOCK: DatabaseClock = { latestMs: () => undefined, hasMoved: () => false };

/** A synchronised clock is slewed by less than a millisecond a second; uptimes are exact to 10 ms. */
const TOLERANCE_MS = 1000;
/**
 * A new course is accepted after this time, because the clock may have been wrong before and be right now. Time enough to
 * notice a clock that is wrong, and to set it right: an alert fires after a minute.
 */
const ACCEPTED_AFTER_MS = 3_600_000;
/**
 * How far the clock may be ahead of this machine's at a first reading that no other replica confirms. Machines of replicas and
 * databases are seldom wrong together, and more than by a few minutes only if no one synchronises them. The stored floor of
 * fencing tokens confirms nothing: replicas that ran by a wrong clock have raised it.
 */
const FIRST_WITHIN_MS = 15 * 60_000;
const RETRY_AFTER_MS = 1000;
/**
 * How far `latestMs` may be ahead of a clock that was not set: the tolerance, and the error of a reading. What must not
 * last longer ends at `latestMs` less this, if the clock was set back.
 */
export const LATEST_AHEAD_MS = 5000;

/** Creates a watch that has not seen the clock yet. */
export function createDatabaseClockWatch({
  onMoved,
  onAccepted,
  nowMs = uptimeMs,
}: {
  readonly onMoved: (move: ClockMove) => void;
  /** Called when the clock is back on its course, or its new course is accepted. */
  readonly onAccepted: (move: ClockMove) => void;
  /** This machine's uptime; only tests change it. */
  readonly nowMs?: () => number;
}) {
  /** How far the database's clock is ahead of the uptime, on the course that is trusted. */
  let trustedMs: number | undefined;
  /** The largest error of `trustedMs`. */
  let trustedWithinMs = 0;
  let movedMs = 0;
  let othersMovedMs = 0;
  let wasMoved = false;
  /** Whether the course that is trusted is known from other replicas or from this machine's clock alone. */
  let isFromWitness = false;
  /** The course that the clock was last seen on, and since when. */
  let seenMs = 0;
  let seenSinceMs = 0;

  const disagreementMs = () => othersMovedMs - movedMs;
  /** How much further forward another replica saw the clock move; a clock that was set back is not ahead of it. */
  const movedForOthersMs = () => Math.max(0, othersMovedMs - Math.max(0, movedMs));
  const hasMoved = () => movedMs !== 0 || (othersMovedMs !== 0 && Math.abs(disagreementMs()) > TOLERANCE_MS);

  function trust(courseMs: number, uncertaintyMs: number): void {
    trustedMs = courseMs;
    trustedWithinMs = uncertaintyMs;
  }

  /** Compares a course with the trusted one, and follows a clock that is slewed. */
  function compare(courseMs: number, uncertaintyMs: number): void {
    const byMs = courseMs - (trustedMs ?? courseMs);
    movedMs = Math.abs(byMs) > TOLERANCE_MS + trustedWithinMs + uncertaintyMs ? byMs : 0;
    // A slow reading says little.
    const isGood = uncertaintyMs <= Math.max(trustedWithinMs, TOLERANCE_MS / 2);
    if (movedMs === 0 && isGood) trust(courseMs, uncertaintyMs);
  }

  return {
    /** As DatabaseClock; `hasMoved`, too. */
    latestMs: () =>
      trustedMs === undefined
        ? undefined
        : trustedMs + nowMs() - movedForOthersMs() + trustedWithinMs + TOLERANCE_MS,
    hasMoved,
    /** Returns how far the clock is ahead of the previous clock, in milliseconds; 0: it was not set. */
    movedMs: () => movedMs,
    /** Returns the time now by the previous clock; undefined before the first reading. */
    expectedMs: () => (trustedMs === undefined ? undefined : trustedMs + nowMs()),
    /**
     * Compares a reading of the clock, whose other times are uptimes, with the course that it had.
     *
     * @param othersMoved the furthest that another live replica saw the clock move forward, in milliseconds; 0: none did;
     * undefined: there is no other one that knows.
     * @param ownAheadMs how far this machine's clock is ahead of the database's; it counts at the first reading alone.
     */
    see(reading: ClockReading, othersMoved: number | undefined, ownAheadMs: number): void {
      const { aheadMs, uncertaintyMs } = clockOffset(reading);
      const courseMs = -aheadMs;
      const isOtherCourse = Math.abs(courseMs - seenMs) > TOLERANCE_MS + uncertaintyMs;
      // A replica that starts now knows the course from those that saw the clock move.
      if (trustedMs === undefined) {
        trust(courseMs - (othersMoved ?? 0), uncertaintyMs);
        // The first one has this machine's clock as the only witness.
        if (othersMoved === undefined && -ownAheadMs > FIRST_WITHIN_MS + uncertaintyMs)
          trust(courseMs + ownAheadMs, FIRST_WITHIN_MS);
        isFromWitness = trustedMs !== courseMs;
      }
      // They stored it before the clock was set right, if none of them still says so. They may have it from each other, and the
      // first one from a machine's fast clock: the previous clock ends no retention too soon.
      if (isFromWitness && !isOtherCourse && (othersMoved === 0 || courseMs < (trustedMs ?? courseMs))) {
        trust(courseMs, uncertaintyMs);
        isFromWitness = false;
      }
      othersMovedMs = othersMoved ?? 0;
      if (isOtherCourse || movedMs === 0) {
        seenMs = courseMs;
        seenSinceMs = nowMs();
      }
      if (movedMs !== 0 && nowMs() - seenSinceMs >= ACCEPTED_AFTER_MS) {
        trust(courseMs, uncertaintyMs);
        isFromWitness = false;
      }
      compare(courseMs, uncertaintyMs);
      const isMoved = hasMoved();
      if (isMoved !== wasMoved) (isMoved ? onMoved : onAccepted)({ movedMs, othersMovedMs });
      wasMoved = isMoved;
    },
  };
}

/**
 * Returns the refusal of an operation on a record whose retention has ended only by a clock that is not trusted. It can be
 * retried: neither that the record exists nor that there is none is certain.
 */
export function clockMoved(): Refusal {
  return new Refusal(
    "DATABASE_UNAVAILABLE",
    "The database's clock was set. By the previous clock the key's retention has not ended yet.",
    { retryAfterMs: RETRY_AFTER_MS },
  );
}
