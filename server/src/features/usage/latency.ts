/** Buckets of how long claims took: the first is up to 0.25 ms, each further one twice as long, the last one without a limit. */
export const LATENCY_BUCKETS = 17;
const FIRST_MS = 0.25;

/** Returns the bucket of a duration. */
export function latencyBucket(durationMs: number): number {
  const bucket = Math.ceil(Math.log2(durationMs / FIRST_MS));
  return Math.min(Math.max(bucket, 0), LATENCY_BUCKETS - 1);
}

/** Returns the time within which a share of claims was answered, at most twice too long; undefined: there was no claim. */
export function latencyQuantileMs(buckets: readonly number[], share: number): number | undefined {
  const wanted = share * buckets.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return undefined;
  let counted = 0;
  const bucket = buckets.findIndex((count) => {
    counted += count;
    return counted >= wanted;
  });
  return FIRST_MS * 2 ** bucket;
}
