import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Written as days from here on: 72h is how the contract speaks of three. */
const DAYS_FROM_MS = 96 * 3_600_000;

/** Milliseconds of a duration such as 90s, 15m, 24h or 7d; undefined for anything else. */
export function readDurationMs(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return count === undefined || unitMs === undefined ? undefined : Number(count) * unitMs;
}

/** @throws InvalidArgumentError, which commander shows with the option's name. */
export function parseDuration(text: string): Duration {
  const ms = readDurationMs(text);
  if (ms === undefined) throw new InvalidArgumentError("It must be a duration such as 90s, 15m, 24h or 7d.");
  return durationFromMs(ms);
}

/** The shortest way to write it that `parseDuration` reads as the same; "-" for none. */
export function formatDuration(duration: Duration | undefined): string {
  if (duration === undefined) return "-";
  const ms = durationMs(duration);
  const units = ["d", "h", "m", "s"].filter((unit) => unit !== "d" || ms >= DAYS_FROM_MS);
  const unit = units.find((name) => ms > 0 && ms % (UNITS_MS[name] ?? 1) === 0) ?? (ms === 0 ? "s" : "ms");
  return `${ms / (UNITS_MS[unit] ?? 1)}${unit}`;
}
