/**
 * The function of `sha256-node.ts` for browsers and Workers. `imports` in package.json chooses one of the two, so that no bundle
 * has both.
 */
export { sha256 as sha256OfBytes } from "@noble/hashes/sha2.js";
