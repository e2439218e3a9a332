import { describe, expect, test } from "vitest";
import { latenessBucket } from "../domain/usage.ts";
import { createUsageMeter } from "./meter.ts";

const CHARGES = { tenantId: 1, namespace: "charges" };
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

describe("a usage meter", () => {
  test("counts claims by their outcome, and the outcomes add up to the claims", () => {
    const meter = createUsageMeter();
    meter.claimed(CHARGES, { ...CLAIMED, attempt: 1 }, 1000);
    meter.claimed(CHARGES, { ...CLAIMED, attempt: 2 }, 1000);
    meter.claimed(CHARGES, IN_PROGRESS, 1000);
    meter.mismatched(CHARGES);
    const [{ counters } = { counters: undefined }] = meter.take();
    expect(counters).toMatchObject({ claims: 4, granted: 2, reclaims: 1, in_progress: 1, mismatches: 1 });
  });

  test("keeps tenants and namespaces apart", () => {
    const meter = createUsageMeter();
    meter.count(CHARGES, "fenced");
    meter.count({ tenantId: 2, namespace: "charges" }, "fenced", 2);
    meter.count({ tenantId: 1, namespace: "refunds" }, "fenced", 3);
    expect(
      meter.take().map(({ tenantId, namespace, counters }) => [tenantId, namespace, counters.fenced]),
    ).toEqual([
      [1, "charges", 1],
      [1, "refunds", 3],
      [2, "charges", 2],
    ]);
  });

  test("gives what it counted once", () => {
    const meter = createUsageMeter();
    meter.count(CHARGES, "swept", 5);
    expect(meter.take()).toHaveLength(1);
    expect(meter.take()).toEqual([]);
  });

  test("sorts repeats by how late they came after the first claim, and a first claim is none", () => {
    const meter = createUsageMeter();
    meter.claimed(CHARGES, { ...CLAIMED, attempt: 1 }, 1000);
    meter.claimed(CHARGES, IN_PROGRESS, 1500);
    meter.claimed(CHARGES, { ...CLAIMED, attempt: 2 }, 1000 + 1_800_000);
    const [usage] = meter.take();
    const buckets = usage?.repeatLateness.flatMap((repeats, bucket) =>
      repeats > 0 ? [[bucket, repeats]] : [],
    );
    expect(buckets).toEqual([
      [latenessBucket(500), 1],
      [latenessBucket(1_800_000), 1],
    ]);
  });
});

test.each([
  [-5, 0],
  [1000, 0],
  [1001, 1],
  [1_800_000, 4],
  [30 * 86_400_000, 10],
  [30 * 86_400_000 + 1, 11],
])("a repeat that is %i ms late falls into bucket %i", (latenessMs, bucket) => {
  expect(latenessBucket(latenessMs)).toBe(bucket);
});
