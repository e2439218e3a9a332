import {
  type Duration,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { formatDurationMs, HOUR_MS, parseDurationMs } from "#words/durations";

/** Returns a duration as options take it; "-" for undefined. */
export function formatDuration(duration: Duration | undefined): string {
  return duration === undefined ? "-" : formatDurationMs(durationMs(duration));
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** Parses a time in RFC 3339, or a duration before now, such as 24h. @throws InvalidArgumentError. */
export function parsePast(text: string): Timestamp {
  return parseMoment(text, -1);
}

/** Parses a time in RFC 3339, or a duration from now, such as 90d. @throws InvalidArgumentError. */
export function parseFuture(text: string): Timestamp {
  return parseMoment(text, 1);
}

function parseMoment(text: string, direction: 1 | -1): Timestamp {
  const distanceMs = parseDurationMs(text);
  if (distanceMs !== undefined) return timestampFromMs(Date.now() + direction * distanceMs);
  if (RFC_3339.test(text) && !Number.isNaN(Date.parse(text))) return timestampFromMs(Date.parse(text));
  throw new InvalidArgumentError(
    "It must be a time such as 2026-01-31T09:00:00Z, or a duration such as 24h.",
  );
}

/** A past time in a table: relative to now on a terminal, and absolute in pipes. */
export class Moment {
  /** How far ahead it may be. The service's clock may be ahead of this machine's: a past time is then now. */
  protected readonly maxAheadMs: number = 0;
  readonly #at: Timestamp | undefined;

  constructor(at: Timestamp | undefined) {
    this.#at = at;
  }

  /** Returns the text; with `nowMs`, how long before or after it, such as "5m ago". */
  format(nowMs: number | undefined): string {
    if (nowMs === undefined || this.#at === undefined) return formatMoment(this.#at);
    const distanceMs = Math.min(timestampMs(this.#at) - nowMs, this.maxAheadMs);
    if (Math.abs(distanceMs) < 1000) return "now";
    const [unit, unitMs] = UNITS.find(([, ms]) => Math.abs(distanceMs) >= ms) ?? ["s", 1000];
    const text = `${Math.floor(Math.abs(distanceMs) / unitMs)}${unit}`;
    return distanceMs > 0 ? `in ${text}` : `${text} ago`;
  }
}

/** A time in a table that may be ahead, such as the end of a retention. */
export class Deadline extends Moment {
  protected override readonly maxAheadMs = Number.POSITIVE_INFINITY;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** A past hour in a table, for what is known to the hour: no moment in it is named, which could be before an event of the same hour. */
export class Hour extends Moment {
  readonly #begin: Timestamp | undefined;

  constructor(begin: Timestamp | undefined) {
    super(begin);
    this.#begin = begin;
  }

  /** Returns the text: "this hour", "2h ago" (its end, rounded down), "not yet"; without `nowMs`, its first and last minute. */
  override format(nowMs: number | undefined): string {
    if (this.#begin === undefined) return "not yet";
    const endMs = timestampMs(this.#begin) + HOUR_MS;
    if (nowMs === undefined)
      return `${formatMoment(this.#begin).slice(0, 16)}/${formatMinute(endMs - 60_000)}`;
    return nowMs < endMs ? "this hour" : new Moment(timestampFromMs(endMs)).format(nowMs);
  }
}

function formatMinute(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 16)}Z`;
}

/** A duration in a table, whose column has one unit. */
export class Span {
  readonly duration: Duration | undefined;

  constructor(duration: Duration | undefined) {
    this.duration = duration;
  }
}

/** Returns durations in the largest unit in which all of them are whole; "-" for undefined. Alone, each is as `formatDuration` has it. */
export function formatAlike(durations: readonly (Duration | undefined)[]): readonly string[] {
  const lengths = durations.flatMap((duration) => (duration === undefined ? [] : [durationMs(duration)]));
  const texts = durations.map(formatDuration);
  const unitsUsed = new Set(texts.filter((text) => text !== "-").map((text) => text.replace(/\d+/, "")));
  if (unitsUsed.size < 2) return texts;
  const [unit, unitMs] = UNITS.find(([, ms]) => lengths.every((length) => length % ms === 0)) ?? ["ms", 1];
  return durations.map((duration) =>
    duration === undefined ? "-" : `${durationMs(duration) / unitMs}${unit}`,
  );
}

/** Returns a time to the second, in UTC; "-" for undefined. */
export function formatMoment(moment: Timestamp | undefined): string {
  if (moment === undefined) return "-";
  return new Date(timestampMs(moment)).toISOString().replace(/\.\d+Z$/, "Z");
}
