import { expect, test } from "vitest";
import { fingerprintDepth } from "./domain/depth.ts";
import { createFirstClaims } from "./first-claims.ts";

const claimOf = (namespace: string, fingerprint?: Uint8Array) => ({
  id: { tenantId: 1, namespace, key: "order-1" },
  fingerprint,
  retentionInForceS: 7,
  keyCreatedAtMs: undefined,
});
const CLAIMED = {
  kind: "claimed",
  attempt: 1,
  repeated: false,
  fencingToken: 1n,
  leaseExpiresAtMs: 0,
  leaseRemainingMs: 0,
  checkpoint: undefined,
  expiresAtMs: 0,
  firstClaimedAtMs: 1000,
  answeredAtMs: undefined,
} as const;
const IN_PROGRESS = { ...CLAIMED, kind: "inProgress", owner: "" } as const;

test("a namespace's first 50 claims are observed, then those of sampled fingerprints", () => {
  const buffer = createFirstClaims({
    samplingOf: () => ({ hasTombstones: false, fingerprintShift: 2 }),
    onFull() {},
  });
  const fingerprints = Array.from(
    { length: 2000 },
    (_, n) => new Uint8Array(new Uint32Array([n + 2]).buffer),
  );
  expect(fingerprintDepth(fingerprints[50] ?? new Uint8Array())).toBeLessThan(2);
  const takeAll = () => {
    for (const fingerprint of fingerprints) {
      for (const outcome of [CLAIMED, IN_PROGRESS, { ...CLAIMED, repeated: true }])
        buffer.claimed(claimOf("charges", fingerprint), outcome, 1000);
    }
    const taken = buffer.take();
    expect(taken.every(({ isObserved }) => isObserved)).toBe(true);
    return taken.map(({ fingerprint }) => fingerprint);
  };
  const sampled = fingerprints.filter((each) => fingerprintDepth(each) >= 2);
  const expected = fingerprints.filter((each, n) => n < 50 || fingerprintDepth(each) >= 2);
  expect(expected.length).toBeLessThan(700);
  expect(takeAll()).toEqual(expected);
  expect(buffer.take()).toEqual([]);
  // In the same interval, the first 50 are used up.
  expect(takeAll()).toEqual(sampled);
  buffer.beginInterval();
  expect(takeAll()).toEqual(expected);
});

test("first claims are kept where tombstones are, without a fingerprint that is not sampled", () => {
  const buffer = createFirstClaims({
    samplingOf: ({ namespace }) => ({ hasTombstones: namespace === "mail", fingerprintShift: 33 }),
    onFull() {},
  });
  for (const namespace of ["charges", "mail"]) {
    for (let i = 0; i < 51; i++) buffer.claimed(claimOf(namespace, new Uint8Array(32)), CLAIMED, 1000);
  }
  const taken = buffer.take();
  expect(taken).toHaveLength(101);
  expect(taken.at(-1)).toEqual({
    id: claimOf("mail").id,
    fingerprint: undefined,
    atMs: 1000,
    retentionS: 7,
    isObserved: false,
  });
});

test("first claims are asked for when many of them wait", async () => {
  const full = Promise.withResolvers<void>();
  const buffer = createFirstClaims({
    samplingOf: () => ({ hasTombstones: true, fingerprintShift: 0 }),
    onFull: full.resolve,
  });
  for (let i = 0; i < 5000; i++) buffer.claimed(claimOf("charges"), CLAIMED, 1000);
  await full.promise;
  expect(buffer.take()).toHaveLength(5000);
});
