import fc from "fast-check";
import { expect, test } from "vitest";
import { type ItemRequest, runBatch } from "../support/calls/batches.ts";
import { comparable } from "../support/calls/comparable.ts";
import { runOneByOne } from "../support/calls/one-by-one.ts";
import { failure, fingerprintOf, grant, ORDER, success } from "../support/calls/verbs.ts";
import { describeContractOnce } from "../support/servers/contract.ts";
import {
  describeSharedContractOnce,
  type SharedCaller,
  type SharedContract,
} from "../support/servers/shared-contract.ts";

/** A call on one of a few keys; `token` selects one of the key's claims. */
interface Operation {
  readonly key: string;
  readonly kind: "claim" | "complete" | "release" | "extendLease" | "lookup";
  readonly token: "current" | "older" | "never granted";
  readonly fingerprint: "none" | "one" | "other";
  readonly claimId: "" | "call-1" | "call-2";
  readonly variant: boolean;
}

const KEYS = ["a", "b", "c"];

const operation: fc.Arbitrary<Operation> = fc.record({
  key: fc.constantFrom(...KEYS),
  kind: fc.constantFrom("claim", "claim", "complete", "release", "extendLease", "lookup"),
  token: fc.constantFrom("current", "current", "older", "never granted"),
  fingerprint: fc.constantFrom("none", "one", "other"),
  claimId: fc.constantFrom("", "call-1", "call-2"),
  variant: fc.boolean(),
});

/** A token that no claim gets. */
const NEVER_GRANTED = 2n ** 62n;

/** The history of each key before the operations. */
const start = fc.record({
  claims: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: KEYS.length, maxLength: KEYS.length }),
  lapsed: fc.boolean(),
});

/** Claims each key as often as given, and returns its tokens, oldest first. */
async function begin(
  { client, timePasses }: SharedCaller,
  run: string,
  { claims, lapsed }: { readonly claims: readonly number[]; readonly lapsed: boolean },
): Promise<ReadonlyMap<string, readonly bigint[]>> {
  const tokens = new Map<string, bigint[]>();
  for (const [index, key] of KEYS.entries()) {
    const granted: bigint[] = [];
    for (let claim = 0; claim < (claims[index] ?? 0); claim++) {
      const last = granted.at(-1);
      if (last !== undefined) await client.release({ ...ORDER, key: run + key, fencingToken: last });
      granted.push((await grant(client, { key: run + key, claimId: `call-${claim + 1}` })).fencingToken);
    }
    tokens.set(key, granted);
  }
  if (lapsed) await timePasses(31);
  return tokens;
}

/** Returns an operation as a request, with the tokens of a tenant's keys. */
function requestOf(
  { key, kind, token, fingerprint, claimId, variant }: Operation,
  run: string,
  tokens: ReadonlyMap<string, readonly bigint[]>,
): ItemRequest {
  const id = { ...ORDER, key: run + key };
  const granted = tokens.get(key) ?? [];
  const named = { current: granted.at(-1), older: granted.at(-2), "never granted": undefined }[token];
  const held = { ...id, fencingToken: named ?? NEVER_GRANTED };
  switch (kind) {
    case "claim": {
      const bound = fingerprint === "none" ? {} : { fingerprint: fingerprintOf(fingerprint) };
      return { case: "claim", value: { ...id, ...bound, claimId, acceptAmbiguous: variant } };
    }
    case "complete":
      return { case: "complete", value: { ...held, result: variant ? success("1") : failure("2") } };
    case "release":
      return { case: "release", value: { ...held, reason: variant ? "why" : "" } };
    case "extendLease":
      return { case: "extendLease", value: { ...held, ...(variant && { checkpoint: { name: claimId } }) } };
    case "lookup":
      return { case: "lookup", value: id };
  }
}

function equalsItsCalls(contract: SharedContract): void {
  test.each(["RECLAIM", "HOLD"])(
    "under %s, for any calls",
    async (onLeaseExpiry) => {
      const batched = await contract.newCaller({ on_lease_expiry: onLeaseExpiry });
      const single = await contract.newCaller({ on_lease_expiry: onLeaseExpiry });
      let runs = 0;
      await fc.assert(
        fc.asyncProperty(
          start,
          fc.array(operation, { minLength: 1, maxLength: 25 }),
          async (before, operations) => {
            const run = `run-${runs++}-`;
            const inBatch = await begin(batched, run, before);
            const oneByOne = await begin(single, run, before);
            const together = await runBatch(
              batched.client,
              operations.map((each) => requestOf(each, run, inBatch)),
            );
            const apart = await runOneByOne(
              single.client,
              operations.map((each) => requestOf(each, run, oneByOne)),
            );
            const keys = operations.map((each) => each.key);
            expect(comparable(together, keys)).toEqual(comparable(apart, keys));
          },
        ),
        { numRuns: 25 },
      );
    },
    60_000,
  );
}

describeSharedContractOnce("A batch equals the same calls made one after another", equalsItsCalls);
describeContractOnce("A batch equals its calls where copies of completed records are kept", equalsItsCalls, {
  ONCEWARD_CACHE_MIB: "64",
});
