import type { Duration } from "@bufbuild/protobuf/wkt";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const UNITS = [
  ["d", DAY_MS],
  ["h", HOUR_MS],
  ["min", MINUTE_MS],
  ["s", SECOND_MS],
] as const;

/** The units that `parseDuration` accepts; "m" as the command line's. */
const PARSED_UNITS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  min: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

const NANOS_PER_MS = 1_000_000;

/** Returns a message's duration in milliseconds. */
export function durationMs(duration: Duration): number {
  return Number(duration.seconds) * SECOND_MS + duration.nanos / NANOS_PER_MS;
}

/** Returns a duration in at most two units that follow each other, such as "3 d 4 h"; rounded down. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < SECOND_MS) return ms === 0 ? "0 s" : `${Math.round(ms)} ms`;
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[first] ?? UNITS[UNITS.length - 1] ?? ["s", SECOND_MS];
  const count = Math.floor(ms / size);
  const next = UNITS[first + 1];
  const rest = next === undefined ? 0 : Math.floor((ms - count * size) / next[1]);
  return next === undefined || rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${next[0]}`;
}

/**
 * Returns a whole duration exactly, in the form that `parseDuration` and the command line read: the largest unit that
 * divides it, such as "72h" or "90s".
 */
export function writeDuration(ms: number): string {
  const exact = [...UNITS].find(([, size]) => ms >= size && ms % size === 0);
  if (exact === undefined) return `${ms / SECOND_MS}s`;
  const [unit, size] = exact;
  return `${ms / size}${unit === "min" ? "m" : unit}`;
}

/** Returns the milliseconds of a text such as "72h", "3 d" or "90 min"; undefined if it is none. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9})\s*([a-z]{1,3})$/.exec(text.trim().toLowerCase());
  const unit = PARSED_UNITS[match?.[2] ?? ""];
  return match === null || unit === undefined ? undefined : Number(match[1]) * unit;
}

/** Returns the message for a duration in milliseconds. */
export function durationOf(ms: number): { seconds: bigint; nanos: number } {
  const seconds = Math.floor(ms / SECOND_MS);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * SECOND_MS) * NANOS_PER_MS) };
}
