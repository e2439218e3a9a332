import fc from "fast-check";
import type { ItemRequest } from "./batches.ts";
import { failure, fingerprintOf, seconds, success } from "./verbs.ts";

/** A call on one of a few keys, as clients send it; `token` selects one of the key's claims. */
export interface Operation {
  readonly kind: "claim" | "complete" | "release" | "extendLease" | "lookup";
  readonly namespace: string;
  readonly key: string;
  readonly token: keyof typeof TOKENS;
  readonly fingerprint: Uint8Array;
  readonly claimId: string;
  readonly text: string;
  readonly acceptAmbiguous: boolean;
  /** Whether a claim completes its record itself. */
  readonly completes: boolean;
  readonly leaseS: number | undefined;
  readonly result: keyof typeof RESULTS;
  readonly checkpoint: string | undefined;
}

/** Choices of a token among those that were granted for the key, oldest first. */
const TOKENS = {
  current: (granted: readonly bigint[]) => granted.at(-1),
  older: (granted: readonly bigint[]) => granted.at(-2),
  "never granted": () => undefined,
};
/** A token that no claim gets. */
const NEVER_GRANTED = 2n ** 62n;

/** Payloads under a policy that allows 10 bytes. */
const RESULTS = {
  one: success("one"),
  other: { ...success("other"), contentType: "text/plain", metadata: { a: "1" } },
  failure: failure("declined"),
  "too large": success("eleven byte"),
};

const NONE = new Uint8Array(0);

/** Mostly on one key, so that its history gets long. Times are multiples of 10 s, or are refused: see `relativeTimes`. */
export const anyOperation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.oneof(
    fc.constant("claim"),
    fc.constantFrom("complete", "complete", "release", "release", "extendLease", "extendLease", "lookup"),
  ),
  namespace: mostly("charges", "mails"),
  key: mostly("a", "b"),
  token: mostly("current", "older", "never granted"),
  fingerprint: mostly(fingerprintOf("one"), fingerprintOf("other"), NONE),
  claimId: fc.constantFrom("", "call-1", "call-2"),
  text: fc.constantFrom("", "text"),
  acceptAmbiguous: fc.boolean(),
  completes: mostly(false, true),
  leaseS: mostly(undefined, 10, 20, 60, 61),
  result: mostly("one", "other", "failure", "too large"),
  checkpoint: mostly(undefined, "charged", "mailed"),
} as const);

/** Generates the first value in three of four cases. */
function mostly<const T>(usual: T, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, fc.constantFrom(...others));
}

/** Returns an operation as a request. `tokens` are those granted for its key, oldest first. */
export function requestOf(operation: Operation, granted: readonly bigint[]): ItemRequest {
  const { namespace, key, fingerprint, claimId, acceptAmbiguous, completes, text, leaseS } = operation;
  const id = { namespace, key };
  const held = { ...id, fencingToken: TOKENS[operation.token](granted) ?? NEVER_GRANTED };
  const lease = leaseS === undefined ? {} : { lease: seconds(leaseS) };
  switch (operation.kind) {
    case "claim":
      return {
        case: "claim",
        value: {
          ...id,
          ...{ fingerprint, claimId, owner: text, acceptAmbiguous },
          ...lease,
          ...(completes && { completion: {} }),
        },
      };
    case "complete":
      return { case: "complete", value: { ...held, result: RESULTS[operation.result] } };
    case "release":
      return { case: "release", value: { ...held, reason: text } };
    case "extendLease": {
      const { checkpoint: name } = operation;
      return {
        case: "extendLease",
        value: { ...held, ...lease, ...(name !== undefined && { checkpoint: { name } }) },
      };
    }
    case "lookup":
      return { case: "lookup", value: id };
  }
}
