import { describe, expect, test } from "vitest";
import { fingerprintDepth } from "./domain/depth.ts";
import { createFirstClaimsBuffer } from "./first-claims.ts";

const CHARGE = {
  id: { tenantId: 1, namespace: "charges", key: "order-1" },
  fingerprint: undefined,
  retentionInForceS: 60,
  keyCreatedAtMs: undefined,
};
const CLAIMED = {
  kind: "claimed",
  repeated: false,
  fencingToken: 1n,
  leaseExpiresAtMs: 0,
  leaseRemainingMs: 0,
  checkpoint: undefined,
  expiresAtMs: 0,
  firstClaimedAtMs: 1000,
  answeredAtMs: undefined,
} as const;
const IN_PROGRESS = { ...CLAIMED, kind: "inProgress", owner: "", attempt: 1 } as const;

test("observes the first 50 keys of a namespace and interval, then sampled fingerprints, once", () => {
  const buffer = createFirstClaimsBuffer({
    isSampled: () => false,
    onFull: () => {},
    fingerprintShiftOf: ({ namespace }) => (namespace === "charges" ? 2 : undefined),
  });
  const fingerprints = Array.from(
    { length: 2000 },
    (_, n) => new Uint8Array(new Uint32Array([n + 2]).buffer),
  );
  expect(fingerprintDepth(fingerprints[50] ?? new Uint8Array())).toBeLessThan(2);
  const claimAll = (namespace: string) => {
    for (const fingerprint of fingerprints) {
      const claimed = { ...CLAIMED, attempt: 1 };
      buffer.claimed({ ...CHARGE, id: { ...CHARGE.id, namespace }, fingerprint }, claimed, 1000);
      buffer.claimed({ ...CHARGE, id: { ...CHARGE.id, namespace }, fingerprint }, IN_PROGRESS, 1000);
    }
  };
  const expected = fingerprints.filter((each, n) => n < 50 || fingerprintDepth(each) >= 2);
  expect(expected.length).toBeLessThan(700);
  claimAll("charges");
  claimAll("not-observed");
  expect(buffer.takeObserved().map(({ fingerprint }) => fingerprint)).toEqual(expected);
  expect(buffer.takeObserved()).toEqual([]);
  // In the same interval, the first 50 are used up.
  claimAll("charges");
  expect(buffer.takeObserved()).toHaveLength(
    fingerprints.filter((each) => fingerprintDepth(each) >= 2).length,
  );
  buffer.beginInterval();
  claimAll("charges");
  expect(buffer.takeObserved()).toHaveLength(expected.length);
});

describe("first claims", () => {
  const CLAIM = { ...CLAIMED, attempt: 1 } as const;

  test("are kept for sampled namespaces alone, and returned once", () => {
    const sampling = {
      isSampled: ({ namespace }: { namespace: string }) => namespace === "mail",
      onFull() {},
    };
    const buffer = createFirstClaimsBuffer(sampling);
    const MAIL = {
      id: { tenantId: 1, namespace: "mail", key: "m-1" },
      fingerprint: undefined,
      retentionInForceS: 7,
      keyCreatedAtMs: undefined,
    };
    buffer.claimed(CHARGE, CLAIM, 1000);
    buffer.claimed(MAIL, CLAIM, 1000);
    buffer.claimed(MAIL, IN_PROGRESS, 1000);
    buffer.claimed(MAIL, { ...CLAIM, repeated: true }, 1000);
    expect(buffer.takeFirstClaims()).toEqual({ ids: [MAIL.id], atMs: [1000], retentionsS: [7] });
    expect(buffer.takeFirstClaims().ids).toEqual([]);
  });

  test("are asked for when many of them wait", async () => {
    const full = Promise.withResolvers<void>();
    const buffer = createFirstClaimsBuffer({ isSampled: () => true, onFull: full.resolve });
    for (let i = 0; i < 5000; i++) buffer.claimed(CHARGE, CLAIM, 1000);
    await full.promise;
    expect(buffer.takeFirstClaims().ids).toHaveLength(5000);
  });
});
