/** The units of durations and their milliseconds, the largest first. */
const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** Durations from here on are written in days; the contract writes three days as 72h. */
const DAYS_FROM_MS = 96 * 3_600_000;

/** Returns the milliseconds of a duration such as 500ms, 90s, 15m, 24h or 7d; undefined for any other text. */
export function parseDurationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([a-z]{1,2})$/.exec(text) ?? [];
  const [, unitMs] = UNITS.find(([name]) => name === unit) ?? [];
  return unitMs === undefined ? undefined : Number(count) * unitMs;
}

/** Returns the text for a whole number of milliseconds that {@link parseDurationMs} reads exactly, such as 90s or 72h. */
export function formatDurationMs(ms: number): string {
  if (ms === 0) return "0s";
  const units = UNITS.filter(([unit]) => unit !== "d" || ms >= DAYS_FROM_MS);
  const [unit, unitMs] = units.find(([, size]) => ms % size === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}
