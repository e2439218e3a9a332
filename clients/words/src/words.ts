const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 3 });

/** Returns a whole number with separators, such as "12,345"; exact for a bigint. */
export function formatCount(count: number | bigint): string {
  return WHOLE.format(count);
}

/** Returns an estimate with three digits, such as "12,300" or "0.42": more digits would claim to know more. */
export function formatEstimate(value: number): string {
  return SHORT.format(value);
}

/** Returns a rate a second with one decimal, such as "4.6": a count of a minute knows no more. */
export function formatRate(perSecond: number): string {
  return perSecond > 0 && perSecond < 0.1 ? "under 0.1" : formatEstimate(Math.round(perSecond * 10) / 10);
}

/** Returns the upper bound of a measured latency, such as "≤ 64ms": true ones are known to a power of two. */
export function formatLatency(maxMs: number): string {
  return `≤ ${formatEstimate(maxMs)}ms`;
}

/** Returns a share from 0 to 1 as a percentage with three digits. */
export function formatShare(share: number): string {
  return PERCENT.format(share);
}

/** Returns a count with its noun: `one` for exactly 1, else `many`. */
export function formatNoun(count: number | bigint, one: string, many: string): string {
  return `${formatCount(count)} ${Number(count) === 1 ? one : many}`;
}
