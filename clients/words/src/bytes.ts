import { formatCount } from "./words.ts";

/** The units of bytes; each is 1,024 times the one before. */
const UNITS = ["", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
const STEP = 1024;

/** Returns a number of bytes, such as 65536, 64KiB or 5GiB, with the unit in any case; undefined for any other text. */
export function parseBytes(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,15})([a-z]*)$/i.exec(text) ?? [];
  const power = UNITS.findIndex((name) => name.toLowerCase() === unit.toLowerCase());
  const bytes = Number(count) * STEP ** power;
  return power === -1 || !Number.isSafeInteger(bytes) ? undefined : bytes;
}

/** Returns the text for a number of bytes that {@link parseBytes} reads exactly, in the largest unit that divides it. */
export function formatBytes(bytes: number): string {
  const power = bytes === 0 ? 0 : UNITS.findLastIndex((_, power) => bytes % STEP ** power === 0);
  return `${bytes / STEP ** power}${UNITS[power]}`;
}

/** Returns a measured size in the same units, with three digits, such as "1.5KiB" or "1,023B". */
export function formatSize(bytes: number | bigint): string {
  const value = Number(bytes);
  const power = UNITS.findLastIndex((_, each) => value >= STEP ** each);
  if (power < 1) return `${formatCount(value)}B`;
  const scaled = value / STEP ** power;
  return `${Number(scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0))}${UNITS[power]}`;
}
