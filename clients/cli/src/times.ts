import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Durations from here on are written in days; the contract writes three days as 72h. */
const DAYS_FROM_MS = 96 * 3_600_000;

/** Returns the milliseconds of a duration such as 90s, 15m, 24h or 7d; undefined for any other text. */
export function readDurationMs(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return count === undefined || unitMs === undefined ? undefined : Number(count) * unitMs;
}

/** Parses a duration. @throws InvalidArgumentError, which commander shows with the option's name. */
export function parseDuration(text: string): Duration {
  const ms = readDurationMs(text);
  if (ms === undefined) throw new InvalidArgumentError("It must be a duration such as 90s, 15m, 24h or 7d.");
  return durationFromMs(ms);
}

/** Returns the shortest text that `parseDuration` reads as the same duration; "-" for undefined. */
export function formatDuration(duration: Duration | undefined): string {
  if (duration === undefined) return "-";
  const ms = durationMs(duration);
  const units = ["d", "h", "m", "s"].filter((unit) => unit !== "d" || ms >= DAYS_FROM_MS);
  const unit = units.find((name) => ms > 0 && ms % (UNITS_MS[name] ?? 1) === 0) ?? (ms === 0 ? "s" : "ms");
  return `${ms / (UNITS_MS[unit] ?? 1)}${unit}`;
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
  const distanceMs = readDurationMs(text);
  if (distanceMs !== undefined) return timestampFromMs(Date.now() + direction * distanceMs);
  if (RFC_3339.test(text) && !Number.isNaN(Date.parse(text))) return timestampFromMs(Date.parse(text));
  throw new InvalidArgumentError(
    "It must be a time such as 2026-01-31T09:00:00Z, or a duration such as 24h.",
  );
}

/** Returns a time to the second, in UTC; "-" for undefined. */
export function formatMoment(moment: Timestamp | undefined): string {
  if (moment === undefined) return "-";
  return new Date(timestampMs(moment)).toISOString().replace(/\.\d+Z$/, "Z");
}
