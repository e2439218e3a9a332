import { createHmac } from "node:crypto";
import type { UsedNamespace } from "../../records/after-operation.ts";

/** Returns hashes of a namespace's keys and fingerprints, keyed with the pepper: a key cannot be found by trying. */
export type KeyHashes = ReturnType<typeof createKeyHashes>;

/** Half of SHA-256: enough that no two keys share a hash. */
const HASH_BYTES = 16;

/** @param pepper the same on all replicas. */
export function createKeyHashes(pepper: string) {
  const secretOf = (purpose: string) => createHmac("sha256", pepper).update(purpose).digest();
  const keySecret = secretOf("onceward observed key");
  const fingerprintSecret = secretOf("onceward observed fingerprint");
  const hash = (secret: Buffer, { tenantId, namespace }: UsedNamespace, value: string | Uint8Array) =>
    createHmac("sha256", secret)
      // The length keeps the parts apart with any contents.
      .update(`${tenantId}:${namespace.length}:${namespace}`)
      .update(value)
      .digest()
      .subarray(0, HASH_BYTES);
  return {
    ofKey: (of: UsedNamespace, key: string): Buffer => hash(keySecret, of, key),
    ofFingerprint: (of: UsedNamespace, fingerprint: Uint8Array): Buffer =>
      hash(fingerprintSecret, of, fingerprint),
  };
}
