/** The milliseconds of the units of time. */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** The units of durations, the largest first. */
const UNITS = [
  ["d", DAY_MS],
  ["h", HOUR_MS],
  ["m", MINUTE_MS],
  ["s", SECOND_MS],
  ["ms", 1],
] as const;

/** Durations from here on are written in days; the contract writes three days as 72h. */
const DAYS_FROM_MS = 4 * DAY_MS;

/** Returns the milliseconds of a duration such as 500ms, 90s, 15m, 24h or 7d; undefined for any other text. */
export function parseDurationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([a-z]{1,2})$/.exec(text) ?? [];
  const [, unitMs] = UNITS.find(([name]) => name === unit) ?? [];
  return unitMs === undefined ? undefined : Number(count) * unitMs;
}

function unitsOf(ms: number) {
  return UNITS.filter(([unit]) => unit !== "d" || ms >= DAYS_FROM_MS);
}

/** Returns the text for a whole number of milliseconds that {@link parseDurationMs} reads exactly, such as 90s or 72h. */
export function formatDurationMs(ms: number): string {
  if (ms === 0) return "0s";
  const [unit, unitMs] = unitsOf(ms).find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}

/** Returns a measured duration in the same units, at most two that follow each other, such as "76h 30m" or "28d"; rounded down. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1000) return ms === 0 ? "0s" : `${Math.round(ms)}ms`;
  const units = unitsOf(ms);
  const first = units.findIndex(([, size]) => ms >= size);
  const [[unit, size] = ["s", 1000], [nextUnit, nextSize] = ["ms", 1]] = units.slice(first);
  const count = Math.floor(ms / size);
  const rest = nextUnit === "ms" ? 0 : Math.floor((ms - count * size) / nextSize);
  return rest === 0 ? `${count}${unit}` : `${count}${unit} ${rest}${nextUnit}`;
}
