import { describe, expect, test } from "vitest";
import { latenessBucket } from "./lateness.ts";
import { createUsageMeter } from "./usage-meter.ts";

const CHARGES = { tenantId: 1, namespace: "charges" };
const CHARGE = {
  id: { ...CHARGES, key: "order-1" },
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

describe("a usage meter", () => {
  test("counts claims with an unknown key time, and first claims of keys past their retention", () => {
    const meter = createUsageMeter(() => {});
    const first = { ...CLAIMED, firstClaimedAtMs: 90_000, attempt: 1 };
    meter.claimed(CHARGE, first, 90_000);
    meter.claimed({ ...CHARGE, keyCreatedAtMs: 30_000 }, first, 90_000);
    meter.claimed({ ...CHARGE, keyCreatedAtMs: 30_001 }, first, 90_000);
    meter.claimed({ ...CHARGE, keyCreatedAtMs: 0 }, { ...first, attempt: 2 }, 95_000);
    meter.claimed({ ...CHARGE, keyCreatedAtMs: 0 }, { ...first, repeated: true }, 95_000);
    meter.claimed({ ...CHARGE, keyCreatedAtMs: 0 }, { ...IN_PROGRESS, firstClaimedAtMs: 90_000 }, 95_000);
    expect(meter.take(1000)[0]?.counters).toMatchObject({ late_keys_granted: 1, without_key_time: 1 });
  });

  test("returns up to the requested number of namespaces, each once", () => {
    const meter = createUsageMeter(() => {});
    for (const tenantId of [1, 2, 3])
      for (const namespace of ["a", "b", "c"]) meter.count({ tenantId, namespace }, "swept");
    const taken = [];
    for (let takes = 0; takes < 3; takes++) taken.push(meter.take(4));
    expect(taken.map((each) => each.length)).toEqual([4, 4, 1]);
    expect(new Set(taken.flat().map(({ tenantId, namespace }) => `${tenantId} ${namespace}`)).size).toBe(9);
    expect([meter.size(), meter.take(4)]).toEqual([0, []]);
  });

  test("drops counts of further namespaces while it holds its maximum, and reports each", () => {
    let dropped = 0;
    const meter = createUsageMeter(() => dropped++, 2);
    for (const namespace of ["a", "b", "c", "a"]) meter.count({ tenantId: 1, namespace }, "swept");
    expect(dropped).toBe(1);
    expect(meter.take(10).map(({ namespace, counters }) => [namespace, counters.swept])).toEqual([
      ["a", 2],
      ["b", 1],
    ]);
    meter.count({ tenantId: 1, namespace: "c" }, "swept");
    expect([dropped, meter.size()]).toEqual([1, 1]);
  });

  test("counts claims by the retention in force; further retentions count under the last one", () => {
    const meter = createUsageMeter(() => {});
    for (const retentionInForceS of [60, 120, 60, 1, 2, 3, 4])
      meter.claimed({ ...CHARGE, retentionInForceS }, { ...CLAIMED, attempt: 1 }, 1000);
    expect(retentionsOf(meter)?.map(({ retentionS, claims }) => [retentionS, claims])).toEqual([
      [60, 2],
      [120, 1],
      [1, 1],
      [2, 3],
    ]);
  });

  test("counts a claim that replaced an ended record by how late it came", () => {
    const meter = createUsageMeter(() => {});
    meter.claimed(
      CHARGE,
      { ...CLAIMED, attempt: 1, firstClaimedAtMs: 91_000, endedFirstClaimedAtMs: 1000 },
      0,
    );
    expect(retentionsOf(meter)).toMatchObject([
      { firstClaims: 1, repeats: new Map(), late: new Map([[latenessBucket(90_000), 1]]) },
    ]);
  });
});

function retentionsOf(meter: ReturnType<typeof createUsageMeter>) {
  return meter.take(1000)[0]?.retentions;
}
