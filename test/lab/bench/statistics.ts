/**
 * Returns the value below which this share of the sorted values lies (nearest rank).
 *
 * @throws if there are no values: the bench measured nothing.
 */
export function percentile(sorted: readonly number[], share: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error("nothing was measured");
  return value;
}

/** Returns the middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const half = sorted.length / 2;
  return (percentile(sorted, 0.5) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

/** Returns a sorted copy. */
export function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
