const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration as variables and the contract's defaults have it: `250ms`, `3s`, `10m`, `1h` or `7d`. */
export const DURATION_TEXT = /^(\d{1,9})(ms|s|m|h|d)$/;

/** Returns the milliseconds of a duration; NaN if the text is not one. */
export function parseDurationMs(text: string): number {
  const [, digits, unit = ""] = DURATION_TEXT.exec(text) ?? [];
  return Number(digits) * (UNIT_MS[unit] ?? Number.NaN);
}
