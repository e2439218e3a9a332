/**
 * Batches that succeed until a batch has grown from nothing to its maximum: a size that just failed is not
 * tried at once.
 */
const GROWTH_STEPS = 10;

/** Returns the size of the batch after one that failed: half of it, at least 1. */
export function smallerBatch(rows: number): number {
  return Math.ceil(rows / 2);
}

/**
 * Returns the size of the batch after one that succeeded: a tenth of the maximum more, at most the maximum.
 */
export function largerBatch(rows: number, maxRows: number): number {
  return Math.min(maxRows, rows + Math.ceil(maxRows / GROWTH_STEPS));
}
