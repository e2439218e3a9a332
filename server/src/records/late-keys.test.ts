import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LATE_KEY_GRACE_S, type PolicyOverrides, resolvePolicy } from "../domain/policy.ts";
import { acceptedUntilMs, claimAfterLoss, historyAfter } from "./late-keys.ts";
import type { ClaimCommand } from "./record.ts";

const HOUR_S = 3600;
const HOUR_MS = 3_600_000;
const MARGIN_MS = LATE_KEY_GRACE_S * 1000;
/** When the policies of these tests change. */
const CHANGED_MS = 1_000_000_000;

/** Returns a layer as it is stored after changes of it, each at its time. */
function changed(...changes: readonly (readonly [atMs: number, policy: PolicyOverrides])[]): PolicyOverrides {
  return changes.reduce<PolicyOverrides>(
    (was, [atMs, becomes]) => ({
      ...becomes,
      history: historyAfter(resolvePolicy(was), resolvePolicy({ ...becomes, history: was.history }), atMs),
    }),
    {},
  );
}

/** Returns how long after its creation a key is accepted, in seconds. */
function limitS(createdAtMs: number, ...layers: readonly PolicyOverrides[]): number {
  return (acceptedUntilMs(createdAtMs, resolvePolicy(...layers)) - createdAtMs) / 1000;
}

describe("A key is accepted", () => {
  test("until its retention after its creation", () => {
    expect(limitS(CHANGED_MS, { lateKeys: "REFUSE", keyRetentionS: HOUR_S })).toBe(HOUR_S);
  });

  test("until the earlier retention, if it may have been claimed before the lengthening", () => {
    const policy = changed(
      [0, { lateKeys: "REFUSE", keyRetentionS: HOUR_S }],
      [CHANGED_MS, { lateKeys: "REFUSE", keyRetentionS: 9 * HOUR_S }],
    );
    expect(limitS(CHANGED_MS, policy)).toBe(HOUR_S);
    expect(limitS(CHANGED_MS + MARGIN_MS, policy)).toBe(HOUR_S);
    expect(limitS(CHANGED_MS + MARGIN_MS + 1, policy)).toBe(9 * HOUR_S);
  });

  test("until the new retention, however it was created, if the retention was shortened", () => {
    const policy = changed(
      [0, { lateKeys: "REFUSE", keyRetentionS: 9 * HOUR_S }],
      [CHANGED_MS, { lateKeys: "REFUSE", keyRetentionS: HOUR_S }],
    );
    expect(limitS(CHANGED_MS, policy)).toBe(HOUR_S);
  });

  test("for less, if it may have been claimed while late keys were granted", () => {
    const policy = changed([CHANGED_MS, { lateKeys: "REQUIRE_TIME", keyRetentionS: HOUR_S }]);
    expect(limitS(CHANGED_MS + MARGIN_MS, policy)).toBe(HOUR_S - LATE_KEY_GRACE_S);
    expect(limitS(CHANGED_MS + MARGIN_MS + 1, policy)).toBe(HOUR_S);
  });

  test("for half of a short retention then, so that not every key is refused", () => {
    expect(limitS(CHANGED_MS, changed([CHANGED_MS, { lateKeys: "REFUSE", keyRetentionS: 60 }]))).toBe(30);
  });
});

describe("Of several changes", () => {
  const lengthened = (...hours: readonly (readonly [atMs: number, hours: number])[]) =>
    changed(
      ...hours.map(([atMs, count]) => [atMs, { lateKeys: "REFUSE", keyRetentionS: count * HOUR_S }] as const),
    );

  test("the shortest retention and latest time are kept while its keys may be young", () => {
    const policy = lengthened([0, 1], [CHANGED_MS, 5], [CHANGED_MS + HOUR_MS, 9]);
    expect(policy.history?.lengthened).toEqual({ atMs: CHANGED_MS + HOUR_MS, beforeS: HOUR_S });
  });

  test("a lengthening is forgotten once every key from before it is older than the retention", () => {
    const laterMs = CHANGED_MS + MARGIN_MS + 5 * HOUR_MS;
    expect(lengthened([0, 1], [CHANGED_MS, 5], [laterMs - 1, 9]).history?.lengthened).toEqual({
      atMs: laterMs - 1,
      beforeS: HOUR_S,
    });
    expect(lengthened([0, 1], [CHANGED_MS, 5], [laterMs, 9]).history?.lengthened).toEqual({
      atMs: laterMs,
      beforeS: 5 * HOUR_S,
    });
  });

  test("a shorter retention in between counts, and other fields do not", () => {
    const policy = lengthened([0, 9], [CHANGED_MS, 1], [CHANGED_MS + 1, 1], [CHANGED_MS + HOUR_MS, 9]);
    expect(policy.history?.lengthened).toEqual({ atMs: CHANGED_MS + HOUR_MS, beforeS: HOUR_S });
  });

  test("late keys are refused since the last change from RUN", () => {
    const policy = changed(
      [1000, { lateKeys: "REFUSE" }],
      [2000, { lateKeys: "RUN" }],
      [3000, { lateKeys: "REFUSE" }],
      [4000, { lateKeys: "REQUIRE_TIME" }],
    );
    expect(policy.history?.refusedSinceMs).toBe(3000);
  });
});

describe("A namespace", () => {
  const tenant = changed(
    [0, { lateKeys: "REFUSE", keyRetentionS: HOUR_S }],
    [CHANGED_MS, { lateKeys: "REFUSE", keyRetentionS: 9 * HOUR_S }],
  );

  test("that inherits the retention inherits what it was before", () => {
    expect(limitS(CHANGED_MS, tenant, { maxResultBytes: 1 })).toBe(HOUR_S);
  });

  test("that has a retention of its own does not", () => {
    expect(limitS(CHANGED_MS, tenant, { keyRetentionS: 5 * HOUR_S })).toBe(5 * HOUR_S);
  });

  test("that got its own retention after the tenant's was lengthened does", () => {
    const history = historyAfter(
      resolvePolicy(tenant),
      resolvePolicy(tenant, { keyRetentionS: 5 * HOUR_S }),
      CHANGED_MS + 1,
    );
    expect(limitS(CHANGED_MS, tenant, { keyRetentionS: 5 * HOUR_S, history })).toBe(HOUR_S);
  });

  test("that no longer has a shorter retention of its own keeps it for keys from before", () => {
    const was = { keyRetentionS: HOUR_S / 2 };
    const history = historyAfter(resolvePolicy(tenant, was), resolvePolicy(tenant), CHANGED_MS + HOUR_MS);
    expect(limitS(CHANGED_MS + HOUR_MS, tenant, { history })).toBe(HOUR_S / 2);
  });
});

test("records are kept for longer where late keys are refused, and results as long as their keys", () => {
  const policy = { keyRetentionS: 100, failureRetentionS: 60 };
  expect(resolvePolicy(policy).stamped).toEqual({
    keyRetentionS: 100,
    resultRetentionS: 100,
    failureRetentionS: 60,
  });
  for (const lateKeys of ["REFUSE", "REQUIRE_TIME"] as const)
    expect(resolvePolicy(policy, { lateKeys }).stamped).toEqual({
      keyRetentionS: 100 + LATE_KEY_GRACE_S,
      resultRetentionS: 100 + LATE_KEY_GRACE_S,
      failureRetentionS: 60,
    });
});

test("a record outlasts its key's young time, regardless of later policy changes", () => {
  const change = fc.record({
    afterMs: fc.integer({ min: 0, max: 20 * HOUR_MS }),
    keyRetentionS: fc.integer({ min: 60, max: 20 * HOUR_S }),
  });
  fc.assert(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 6 }),
      fc.nat(),
      fc.integer({ min: -20 * HOUR_MS, max: 5 * 60_000 }),
      (changes, claimedAfter, aheadMs) => {
        let atMs = 0;
        const timeline = changes.map(({ afterMs, keyRetentionS }) => {
          atMs += afterMs;
          return [atMs, { lateKeys: "REQUIRE_TIME", keyRetentionS }] as const;
        });
        const policyAt = (ms: number) => changed(...timeline.filter(([changedMs]) => changedMs <= ms));
        const claimedMs = claimedAfter % (atMs + 1);
        const createdMs = claimedMs + aheadMs;
        const claimedUnder = resolvePolicy({ lateKeys: "REQUIRE_TIME" }, policyAt(claimedMs));
        const endsMs = claimedMs + claimedUnder.stamped.keyRetentionS * 1000;
        // The policy changes at some moments alone, so young until the last of them and then by the last policy is enough.
        for (const [changedMs] of timeline.filter(([changedMs]) => changedMs > claimedMs)) {
          const untilMs = acceptedUntilMs(createdMs, resolvePolicy(policyAt(changedMs)));
          expect(untilMs <= endsMs || untilMs <= changedMs).toBe(true);
        }
        expect(acceptedUntilMs(createdMs, claimedUnder)).toBeLessThanOrEqual(endsMs);
      },
    ),
    { numRuns: 2000 },
  );
});

describe("After records were lost", () => {
  const young = { keyCreatedAtMs: CHANGED_MS, acceptedUntilMs: CHANGED_MS + HOUR_MS } as ClaimCommand;

  test("a key that was created before begins no life", () => {
    expect(claimAfterLoss(young, undefined)).toBe(young);
    expect(claimAfterLoss(young, CHANGED_MS)).toEqual({ ...young, acceptedUntilMs: CHANGED_MS });
  });

  test("a key that was created later, is refused anyway, or is not refused late, keeps its limit", () => {
    for (const command of [
      { ...young, keyCreatedAtMs: CHANGED_MS + 1 },
      { ...young, acceptedUntilMs: CHANGED_MS - 1 },
      { ...young, acceptedUntilMs: undefined },
    ])
      expect(claimAfterLoss(command, CHANGED_MS)).toEqual(command);
  });
});
