import { create } from "@bufbuild/protobuf";
import { PolicyBoundsSchema, PolicySchema, TenantUsageSchema, UsageNowSchema } from "@onceward/client/proto";
import { expect, it } from "vitest";
import { beyondBounds, effectOfQuotas } from "./limit-effect.ts";
import { quotaUse, refusedOfBusiest, shareWords } from "./quota-use.ts";

/** 600 claims in the busiest minute, 200 of them refused, and 50 a second within some seconds of it. */
const USAGE = create(TenantUsageSchema, {
  liveRecords: 900n,
  declaredNamespaces: 5,
  now: { claimsPerSecond: 2 },
  busiestMinute: { claims: 400n, refused: 200n, peakCallsPerSecond: 50 },
});

it("tells for each quota whether the present use is beyond it", () => {
  const effects = effectOfQuotas(USAGE, {
    liveRecords: 1_000n,
    storedBytes: 1n,
    declaredNamespaces: 5,
    operationsPerSecond: 60,
  });
  expect(effects.map(({ quota, used, limit, fullness }) => [quota, used, limit, fullness])).toEqual([
    ["liveRecords", "900", "1,000", "near"],
    ["storedBytes", "not counted", "1B", "not counted"],
    ["declaredNamespaces", "5", "5", "beyond"],
    ["operationsPerSecond", "50 a second", "60 a second", "near"],
  ]);
});

it("a quota that is not set limits nothing, but of declared namespaces 1,000", () => {
  expect(effectOfQuotas(USAGE, {}).map(({ limit, fullness }) => [limit, fullness])).toEqual([
    ["not limited", "not limited"],
    ["not limited", "not limited"],
    ["1,000", "within"],
    ["not limited", "not limited"],
  ]);
});

it("a use beyond a quota refuses calls, or only counts them", () => {
  const words = (dryRun: boolean) =>
    effectOfQuotas(USAGE, { liveRecords: 100n, operationsPerSecond: 1, dryRun })
      .filter(({ fullness }) => fullness === "beyond")
      .map(({ consequence }) => consequence);
  expect(words(false)).toEqual([
    "Refuses new claims.",
    "Of the 600 claims of the busiest minute in the last 15, at least 539 would have been refused.",
  ]);
  expect(words(true)).toEqual([
    "Would refuse new claims; only counted.",
    "Of the 600 claims of the busiest minute in the last 15, at least 539 would have been counted, and answered.",
  ]);
});

it("a use of many times the limit is said as such, and is beyond it", () => {
  const words = (used: number, limit: number) => shareWords(used, limit);
  expect([words(998, 10), words(15, 10), words(8, 10), words(0, 0), words(3, 0)]).toEqual([
    ...["99.8 times as many", "1.5 times as many", "80%", "100%", "beyond it"],
  ]);
  const rate = (operationsPerSecond: number, burst?: number) =>
    quotaUse("operationsPerSecond", USAGE, { operationsPerSecond, ...(burst && { burst }) }).fullness;
  expect([rate(1), rate(45, 300), rate(100)]).toEqual(["beyond", "near", "within"]);
});

it("a limit of the rate is judged by the busiest seconds, the last minute, and the burst", () => {
  const refused = (now: number, operationsPerSecond: number, burst?: number) =>
    refusedOfBusiest(
      {
        ...USAGE,
        now: create(UsageNowSchema, {
          claimsPerSecond: now,
          claims: BigInt(now * 50),
          refusedByRate: BigInt(now * 10),
        }),
      },
      operationsPerSecond,
      burst,
    );
  expect(refused(0, 20)).toBe(130);
  expect(refused(0, 20, 140)).toBe(10);
  expect(refused(0, 20, 200)).toBe(0);
  expect(refused(140, 20)).toBe(7180);
});

it("names each value of the policy that is beyond new bounds", () => {
  const seconds = (count: bigint) => ({ seconds: count });
  const policy = create(PolicySchema, {
    keyRetention: seconds(259_200n),
    maxLease: seconds(900n),
    maxResultBytes: 2048,
  });
  const bounds = create(PolicyBoundsSchema, {
    maxKeyRetention: seconds(86_400n),
    maxLease: seconds(900n),
    maxResultBytes: 1024,
  });
  expect(beyondBounds(policy, bounds)).toEqual([
    "The policy's key retention, 72h, is above the new bound, 24h.",
    "The policy's max result bytes, 2KiB, is above the new bound, 1KiB.",
  ]);
  expect(beyondBounds(policy, undefined)).toEqual([]);
  expect(beyondBounds(policy, create(PolicyBoundsSchema, { minKeyRetention: seconds(604_800n) }))).toEqual([
    "The policy's key retention, 72h, is below the new bound, 7d.",
  ]);
});
