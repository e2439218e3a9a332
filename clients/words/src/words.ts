const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 3 });

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
const BYTE_STEP = 1_024;

/** Returns a whole number with separators, such as "12,345"; exact for a bigint. */
export function formatCount(count: number | bigint): string {
  return WHOLE.format(count);
}

/** Returns an estimate with three digits, such as "12,300" or "0.42": more digits would claim to know more. */
export function formatEstimate(value: number): string {
  return SHORT.format(value);
}

/** Returns the upper bound of a measured latency, such as "≤ 64ms": true ones are known to a power of two. */
export function formatLatency(maxMs: number): string {
  return `≤ ${formatEstimate(maxMs)}ms`;
}

/** Returns a share from 0 to 1 as a percentage with three digits. */
export function formatShare(share: number): string {
  return PERCENT.format(share);
}

/** Returns a size in binary units with three digits, such as "1.5 KiB". */
export function formatSize(bytes: number | bigint): string {
  let value = Number(bytes);
  let unit = 0;
  while (Math.abs(value) >= BYTE_STEP && unit < BYTE_UNITS.length - 1) {
    value /= BYTE_STEP;
    unit += 1;
  }
  const text = unit === 0 ? WHOLE.format(value) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
  return `${text} ${BYTE_UNITS[unit]}`;
}

/** Returns a count with its noun: `one` for exactly 1, else `many`. */
export function formatNoun(count: number | bigint, one: string, many: string): string {
  return `${formatCount(count)} ${Number(count) === 1 ? one : many}`;
}
