import { KeyDefect } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { SuspicionKind } from "../domain/key-quality.ts";

/** The defects of keys as the contract names them. */
export const DEFECTS: Readonly<Record<SuspicionKind, KeyDefect>> = {
  newKeyPerRetry: KeyDefect.NEW_KEY_PER_RETRY,
  timeInKey: KeyDefect.TIME_IN_KEY,
  attemptInKey: KeyDefect.ATTEMPT_IN_KEY,
  uuidPerClaim: KeyDefect.UUID_PER_CLAIM,
  noFingerprints: KeyDefect.NO_FINGERPRINTS,
  repeatsAfterExpiry: KeyDefect.REPEATS_AFTER_EXPIRY,
};

/** What to do about each defect. */
export const ADVICE: Readonly<Record<SuspicionKind, string>> = {
  newKeyPerRetry:
    "Make the key once, before the first attempt, from what identifies the operation (such as the order's id), and send the same key with every retry. Two equal operations within minutes look the same: compare the examples with the caller's log.",
  timeInKey:
    "Leave the time of the attempt out of the key. If the operation has a time of its own, such as the time of the order, store it with the order and use the stored one in retries.",
  attemptInKey:
    "Leave the number of the attempt out of the key: all attempts of one operation must have one key. The claim's reply counts the attempts.",
  uuidPerClaim:
    "Make the UUID when the operation is created, store it with the operation, and send the stored one with every retry. If callers never retry, nothing is wrong, and nothing is protected either.",
  noFingerprints:
    "Send a fingerprint of the request, such as SHA-256 over its canonical form. Then a key that is used for a different request is refused instead of replayed.",
  repeatsAfterExpiry:
    "Use a longer key retention: GetRetentionAdvice says how long. If a key is used again on purpose, such as once a day, put the day into the key.",
};
