/*
 * Buckets of lateness: how long after its key's first claim a repeat comes. Bucket n > 0 holds what is later
 * than γ^(n-1) seconds and at most γ^n: the mapping of DDSketch (https://arxiv.org/abs/1908.10693), in which
 * the middle of a bucket differs from each of its values by at most a tenth. Sums of histograms are exact.
 */

/** Ratio of a bucket's limits, for a relative error of a tenth. */
export const LATENESS_RATIO = 1.1 / 0.9;
const LOG_RATIO = Math.log(LATENESS_RATIO);

/** The last bucket, without an upper limit: what is later than 442 days, more than the longest retention. */
export const LAST_LATENESS_BUCKET = 88;

/** Repeats by bucket. Empty buckets are absent. */
export type LatenessCounts = ReadonlyMap<number, number>;

/** Returns the bucket of a repeat that arrived this long after its key was first claimed. */
export function latenessBucket(latenessMs: number): number {
  if (latenessMs <= 1000) return 0;
  return Math.min(LAST_LATENESS_BUCKET, Math.ceil(Math.log(latenessMs / 1000) / LOG_RATIO));
}

/** Returns a bucket's upper limit in milliseconds, rounded up; undefined for the last bucket. */
export function latenessLimitMs(bucket: number): number | undefined {
  return bucket >= LAST_LATENESS_BUCKET ? undefined : Math.ceil(1000 * LATENESS_RATIO ** bucket);
}

/** Returns the time in milliseconds that everything in the bucket is later than; bucket 0: 0. */
export function latenessFloorMs(bucket: number): number {
  return bucket === 0 ? 0 : 1000 * LATENESS_RATIO ** (bucket - 1);
}
