import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEFAULT_POLICY, type PolicyOverrides, resolvePolicy } from "./policy.ts";

const HOUR_S = 3600;

describe("the policy in force", () => {
  test("is the contract's default if no layer sets a field", () => {
    expect(resolvePolicy()).toMatchObject(DEFAULT_POLICY);
    expect(resolvePolicy({}, {})).toEqual({
      ...DEFAULT_POLICY,
      keyRetentionS: 72 * HOUR_S,
      resultRetentionS: 72 * HOUR_S,
      failureRetentionS: 72 * HOUR_S,
      defaultLeaseMs: 30_000,
      maxLeaseMs: 900_000,
      onLeaseExpiry: "RECLAIM",
      maxResultBytes: 65_536,
      requireFingerprint: false,
      lateKeys: "RUN",
      providerLink: "",
      stamped: {
        keyRetentionS: 72 * HOUR_S,
        resultRetentionS: 72 * HOUR_S,
        failureRetentionS: 72 * HOUR_S,
      },
      lengthenings: [],
      refusedSinceMs: undefined,
    });
  });

  test("takes the most specific layer that sets a field", () => {
    const tenant: PolicyOverrides = { onLeaseExpiry: "HOLD", maxResultBytes: 10, requireFingerprint: true };
    const namespace: PolicyOverrides = { maxResultBytes: 20, requireFingerprint: false };
    expect(resolvePolicy(tenant, namespace)).toMatchObject({
      ...DEFAULT_POLICY,
      onLeaseExpiry: "HOLD",
      maxResultBytes: 20,
      requireFingerprint: false,
    });
  });

  test("does not take an unset field for one that is set", () => {
    expect(resolvePolicy({ keyRetentionS: HOUR_S }, { keyRetentionS: undefined })).toMatchObject({
      keyRetentionS: HOUR_S,
    });
  });

  test("takes the wider retention for an unset one", () => {
    expect(resolvePolicy({ keyRetentionS: 100 * HOUR_S })).toMatchObject({
      resultRetentionS: 100 * HOUR_S,
      failureRetentionS: 100 * HOUR_S,
    });
    expect(resolvePolicy({ resultRetentionS: HOUR_S })).toMatchObject({
      keyRetentionS: 72 * HOUR_S,
      failureRetentionS: HOUR_S,
    });
  });

  test("may keep a failure longer than a success, but not longer than its key", () => {
    const policy = { keyRetentionS: 5 * HOUR_S, resultRetentionS: HOUR_S, failureRetentionS: 9 * HOUR_S };
    expect(resolvePolicy(policy)).toMatchObject({ resultRetentionS: HOUR_S, failureRetentionS: 5 * HOUR_S });
  });

  test("limits the default lease to the longest one", () => {
    expect(resolvePolicy({ maxLeaseMs: 10_000 })).toMatchObject({ defaultLeaseMs: 10_000 });
    expect(resolvePolicy({ defaultLeaseMs: 20_000 }, { maxLeaseMs: 10_000 })).toMatchObject({
      defaultLeaseMs: 10_000,
    });
  });

  test("never keeps a result longer than its key, and has no default lease beyond the longest one", () => {
    const layer = fc.record(
      {
        keyRetentionS: fc.integer({ min: 60, max: 400 * 24 * HOUR_S }),
        resultRetentionS: fc.integer({ min: 60, max: 400 * 24 * HOUR_S }),
        failureRetentionS: fc.integer({ min: 60, max: 400 * 24 * HOUR_S }),
        defaultLeaseMs: fc.integer({ min: 1000, max: 24 * HOUR_S * 1000 }),
        maxLeaseMs: fc.integer({ min: 1000, max: 24 * HOUR_S * 1000 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(layer, layer, (tenant, namespace) => {
        const policy = resolvePolicy(tenant, namespace);
        expect(policy.resultRetentionS).toBeLessThanOrEqual(policy.keyRetentionS);
        expect(policy.failureRetentionS).toBeLessThanOrEqual(policy.keyRetentionS);
        expect(policy.defaultLeaseMs).toBeLessThanOrEqual(policy.maxLeaseMs);
      }),
    );
  });
});
