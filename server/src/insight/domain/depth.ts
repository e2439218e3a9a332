import { createTextHash } from "../../domain/text-hash.ts";

/*
 * Samples are deterministic. The depth of a key or of a fingerprint is the number of trailing zero bits of a hash: one in
 * 2^s has a depth of at least s, the same ones on every replica, so that every repeat of a sampled one is seen. A smaller
 * sample is a subset of each larger one. The hash selects, and is never stored; what is stored is an HMAC.
 */

/** Depths are cut off here. One in 4 billion is this deep. */
const MAX_DEPTH = 32;

/**
 * Returns a function that returns a key's depth, by the lower 32 bits of Postgres' `hashtextextended`: the sweep selects
 * keys in SQL.
 *
 * @param seed of the hash, a signed 64-bit number. Two installations sample different keys.
 */
export function createDepthOf(seed: bigint): (key: string) => number {
  const hashOf = createTextHash(seed);
  return (key) => trailingZeros(hashOf(key));
}

/** Returns a fingerprint's depth. */
export function fingerprintDepth(fingerprint: Uint8Array): number {
  let hash = 0;
  for (let i = 0; i < fingerprint.length; i++)
    hash = Math.imul(hash ^ (fingerprint[i] as number), 0x01000193);
  // The last step of MurmurHash3 (public domain): each bit of the sum changes each bit of the hash.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return trailingZeros(hash ^ (hash >>> 16));
}

function trailingZeros(hash: number): number {
  return hash === 0 ? MAX_DEPTH : 31 - Math.clz32(hash & -hash);
}
