import { parseDurationMs } from "@onceward/decode/durations.ts";

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

/** Returns a duration exactly, in the largest unit that divides it, such as "3 d" or "90 s". */
export function formatExactly(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size && ms % size === 0) ?? ["s", SECOND_MS];
  return `${ms / size} ${unit}`;
}

/** Returns the milliseconds of a text such as "72h", "3 d" or "90 min"; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  return parseDurationMs(text.trim().toLowerCase().replace(/\s+/, "").replace(/min$/, "m"));
}
