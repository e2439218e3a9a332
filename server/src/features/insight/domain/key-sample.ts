import { createTextHash } from "../../../core/domain/text-hash.ts";

/*
 * The deterministic sample of keys. A key's depth is the number of trailing zero bits of a keyed hash: one key
 * in 2^s has a depth of at least s, the same keys on every replica and in Postgres, so that every repeat of a
 * sampled key is seen. A smaller sample is a subset of each larger one.
 *
 * The hash is the one of Postgres' `hashtextextended`, because the sweep selects keys in SQL; only its lower 32 bits matter.
 * It selects and is never stored; what is stored is an HMAC.
 */

/** The seed of the sample's hash, a signed 64-bit number. Two installations sample different keys. */
export type SampleSeed = bigint;

/** Depths are cut off here. One key in 4 billion is this deep. */
const MAX_DEPTH = 32;

/** Returns a function that returns a key's depth: from 0 to 32, and at least s for one key in 2^s. */
export function createDepthOf(seed: SampleSeed): (key: string) => number {
  const hashOf = createTextHash(seed);
  return (key) => {
    const hash = hashOf(key);
    return hash === 0 ? MAX_DEPTH : 31 - Math.clz32(hash & -hash);
  };
}
