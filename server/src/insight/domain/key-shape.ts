/*
 * What the text of a key says about how it was made. A key has to be made once for an operation and to be kept for
 * its retries; one that is made at each attempt contains the time of the attempt, its number, or a fresh UUID.
 */

/** A key's shape. */
export interface KeyShape {
  /** Contains a Unix epoch near the claim's time, in seconds, milliseconds, microseconds or nanoseconds. */
  readonly isTime: boolean;
  /** Ends with a word such as "retry" and a number. */
  readonly isAttempt: boolean;
  readonly uuid: UuidShape;
}

/** `random`: of version 4; `prompt`: of version 1 or 7, made within a second of the claim. */
export type UuidShape = "none" | "random" | "prompt" | "earlier";

/** Digits of epochs in this century, and their unit in milliseconds. */
const EPOCH_UNITS_MS: Readonly<Record<number, number>> = { 10: 1000, 13: 1, 16: 1e-3, 19: 1e-6 };
const EPOCH = /(?<![0-9A-Za-z])(?:\d{10}|\d{13}|\d{16}|\d{19})(?![0-9A-Za-z])/g;
/** Clocks differ, and a call may wait; a counter of orders is near the epoch for no longer than this. */
const MAX_EPOCH_DIFFERENCE_MS = 60_000;
/** A UUID that is made at the claim is this near, unless a clock is wrong. */
const MAX_UUID_DIFFERENCE_MS = 1000;
const UUID = /([0-9a-f]{8})-([0-9a-f]{4})-([147])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}/i;
/** From the beginning of the Gregorian calendar, from which version 1 counts (RFC 9562), in milliseconds. */
const GREGORIAN_OFFSET_MS = 12_219_292_800_000;
const TICKS_PER_MS = 10_000;
const ATTEMPT = /[-_:.#/](?:retry|attempt|try)[-_:.#]?\d{1,2}$/i;
/**
 * A single digit behind a separator. More digits are days, minutes and numbers of orders; few callers try ten
 * times.
 */
const COUNTER = /^(.*?[^-_:.#/])[-_:.#/]+(?:(?:retry|attempt|try)[-_:.#]?)?\d$/i;

/** Returns the shape of a key that was claimed at a time in milliseconds since the Unix epoch. */
export function keyShape(key: string, claimedAtMs: number): KeyShape {
  return {
    isTime: isTime(key, claimedAtMs),
    isAttempt: ATTEMPT.test(key),
    uuid: uuidShape(key, claimedAtMs),
  };
}

/** Returns a key without the counter at its end; undefined if it ends with none. */
export function keyStem(key: string): string | undefined {
  return COUNTER.exec(key)?.[1];
}

function isTime(key: string, claimedAtMs: number): boolean {
  for (const [digits] of key.matchAll(EPOCH)) {
    const epochMs = Number(digits) * (EPOCH_UNITS_MS[digits.length] ?? 0);
    if (Math.abs(epochMs - claimedAtMs) <= MAX_EPOCH_DIFFERENCE_MS) return true;
  }
  return false;
}

function uuidShape(key: string, claimedAtMs: number): UuidShape {
  const [, high = "", middle = "", version, low = ""] = UUID.exec(key) ?? [];
  if (version === undefined) return "none";
  if (version === "4") return "random";
  const madeAtMs =
    version === "7"
      ? Number.parseInt(high + middle, 16)
      : Number.parseInt(low + middle + high, 16) / TICKS_PER_MS - GREGORIAN_OFFSET_MS;
  return Math.abs(madeAtMs - claimedAtMs) <= MAX_UUID_DIFFERENCE_MS ? "prompt" : "earlier";
}
