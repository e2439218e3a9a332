import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { TenantUsageSchema } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { PolicyBoundsSchema, PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { expect, it } from "vitest";
import { beyondBounds, effectOfQuotas } from "./limit-effect.ts";

const NOW = new Date("2026-11-23T18:30:00Z");
/** 2 claims a second for 90 minutes. */
const USAGE = create(TenantUsageSchema, {
  liveRecords: 900n,
  declaredNamespaces: 5,
  recentClaims: 10_800n,
  recentSince: timestampFromDate(new Date("2026-11-23T17:00:00Z")),
});

it("tells for each quota whether the present use is beyond it", () => {
  const effects = effectOfQuotas(
    USAGE,
    { liveRecords: 1_000n, storedBytes: 1n, declaredNamespaces: 5, operationsPerSecond: 3 },
    NOW,
  );
  expect(effects.map(({ quota, used, limit, fullness }) => [quota, used, limit, fullness])).toEqual([
    ["liveRecords", "900", "1,000", "near"],
    ["storedBytes", "not counted", "1 B", "not counted"],
    ["declaredNamespaces", "5", "5", "beyond"],
    ["operationsPerSecond", "2 a second", "3 a second", "within"],
  ]);
});

it("a quota that is not set limits nothing, but of declared namespaces 1,000", () => {
  expect(effectOfQuotas(USAGE, {}, NOW).map(({ limit, fullness }) => [limit, fullness])).toEqual([
    ["not limited", "not limited"],
    ["not limited", "not limited"],
    ["1,000", "within"],
    ["not limited", "not limited"],
  ]);
});

it("a use beyond a quota refuses calls, or only counts them", () => {
  const words = (dryRun: boolean) =>
    effectOfQuotas(USAGE, { liveRecords: 100n, operationsPerSecond: 1, dryRun }, NOW)
      .filter(({ fullness }) => fullness === "beyond")
      .map(({ consequence }) => consequence);
  expect(words(false)).toEqual([
    "Refuses new claims (QUOTA_RECORDS).",
    "Refuses claims and lookups beyond it (QUOTA_RATE).",
  ]);
  expect(words(true)).toEqual([
    "Would refuse new claims (QUOTA_RECORDS); only counted.",
    "Would refuse claims and lookups beyond it (QUOTA_RATE); only counted.",
  ]);
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
    "The key retention of 3 d is longer than the new bound.",
    "The largest result of 2.00 KiB is larger than the new bound.",
  ]);
  expect(beyondBounds(policy, undefined)).toEqual([]);
  expect(beyondBounds(policy, create(PolicyBoundsSchema, { minKeyRetention: seconds(604_800n) }))).toEqual([
    "The key retention of 3 d is shorter than the new bound.",
  ]);
});
