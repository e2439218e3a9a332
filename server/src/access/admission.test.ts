import { expect, test } from "vitest";
import { NO_QUOTAS, type Quotas, type StoredTotals } from "../domain/quotas.ts";
import { makeTenant, type Principal } from "../domain/tenant.ts";
import { createAdmission } from "./admission.ts";
import type { StorageTotals } from "./storage-totals.ts";

const CACHE_EPOCH = { scope: "", askedAtMs: 0, databaseTimeMs: 0 };
const SHOP = 7;

function caller(quotas: Partial<Quotas>, id = SHOP): Principal {
  const stored = {
    id,
    name: "shop",
    suspended: false,
    uid: "",
    cacheEpoch: CACHE_EPOCH,
    overrides: {},
  };
  return {
    role: "CALLER",
    actor: "a key",
    tenant: makeTenant({ ...stored, quotas: { ...NO_QUOTAS, ...quotas } }),
    namespaces: undefined,
    goodUntilMs: Number.POSITIVE_INFINITY,
  };
}

function newAdmission(stored: StoredTotals = { records: 0, storedBytes: 0 }, replicas = 1) {
  const refused: string[] = [];
  const changes: StoredTotals[] = [];
  let reserved = 0;
  const totals: StorageTotals = {
    add: (change) => changes.push(change),
    of: () => stored,
    reserve: (_, records) => {
      reserved += records;
    },
    reservedOf: () => reserved,
    start: () => {},
    stop: () => Promise.resolve(),
  };
  const admission = createAdmission({
    totals,
    liveReplicas: () => replicas,
    onRefused: (...args) => refused.push(args.join(" ").trim()),
  });
  return { admission, refused, changes };
}

test("a call that has ended makes room for another", () => {
  const { admission, refused } = newAdmission();
  const one = caller({ concurrentCalls: 1 });
  for (let call = 1; call <= 3; call++) {
    const leave = admission.startCall(one);
    admission.admitOperation(one);
    const leaveToo = admission.startCall(one);
    expect(() => admission.admitOperation(one)).toThrow(
      expect.objectContaining({ reason: "QUOTA_CONCURRENCY" }),
    );
    admission.countOperation(one);
    leave?.();
    leaveToo?.();
  }
  expect(refused).toEqual(Array(3).fill("7 concurrency enforced"));
});

test("calls that a dry run admits are counted until they have ended", () => {
  const { admission, refused } = newAdmission();
  const dry = caller({ concurrentCalls: 1, dryRun: true });
  const leaves = [1, 2, 3].map(() => {
    const leave = admission.startCall(dry);
    admission.admitOperation(dry);
    return leave;
  });
  for (const leave of leaves) leave?.();
  admission.startCall(dry);
  admission.admitOperation(dry);
  expect(refused).toEqual(Array(2).fill("7 concurrency dry_run"));
});

test("a replica admits its share of a tenant's rate: all together admit the quota", () => {
  for (const [replicas, share] of [
    [1, 8],
    [4, 2],
  ] as const) {
    const { admission } = newAdmission(undefined, replicas);
    const limited = caller({ operationsPerSecond: 8, burst: 8 });
    let admitted = 0;
    expect(() => {
      for (; admitted < 100; admitted++) admission.admitOperation(limited);
    }).toThrow(expect.objectContaining({ reason: "QUOTA_RATE" }));
    expect([replicas, admitted]).toEqual([replicas, share]);
  }
});

test("a tenant declares 1,000 namespaces unless its operator allows another number", () => {
  const { admission } = newAdmission();
  const declare = (declared: number, quotas: Partial<Quotas> = {}) => {
    const { tenant } = caller(quotas) as Exclude<Principal, { role: "OPERATOR" }>;
    admission.admitNamespace(tenant, declared);
  };
  declare(999);
  expect(() => declare(1000)).toThrow(expect.objectContaining({ reason: "QUOTA_NAMESPACES" }));
  declare(1000, { declaredNamespaces: 1001 });
});

test("an operator has no quotas", () => {
  const { admission } = newAdmission();
  const operator: Principal = { role: "OPERATOR", actor: "a key", goodUntilMs: 0 };
  expect(admission.startCall(operator)).toBeUndefined();
  admission.admitOperation(operator);
  admission.admitRecord(operator);
});

test("a tenant has the weight of its latest call", () => {
  const { admission } = newAdmission();
  expect(admission.weightOf(SHOP)).toBe(1);
  admission.startCall(caller({ weight: 9 }));
  admission.startCall(caller({}, 8));
  expect([admission.weightOf(SHOP), admission.weightOf(8)]).toEqual([9, 1]);
  admission.startCall(caller({ weight: 1 }));
  expect(admission.weightOf(SHOP)).toBe(1);
});

test("a refusal's retry delay is in whole milliseconds", () => {
  const { admission } = newAdmission();
  const slow = caller({ operationsPerSecond: 3, burst: 1 });
  admission.admitOperation(slow);
  expect(() => admission.admitOperation(slow)).toThrow(
    expect.objectContaining({ retryAfterMs: expect.toSatisfy(Number.isInteger) }),
  );
});

test("a message costs one more operation for each 16 KiB after the first", () => {
  const { admission } = newAdmission();
  const slow = caller({ operationsPerSecond: 1, burst: 5 });
  admission.countMessage(slow, 16 * 1024);
  admission.countMessage(slow, 3 * 16 * 1024 + 1);
  admission.admitOperation(slow);
  admission.admitOperation(slow);
  expect(() => admission.admitOperation(slow)).toThrow(expect.objectContaining({ reason: "QUOTA_RATE" }));
});

test("only batches are refused while their tenant's debt exceeds five seconds of its rate", () => {
  const { admission, refused } = newAdmission();
  const slow = caller({ operationsPerSecond: 10, burst: 1 });
  admission.admitBatch(slow, 40 * 16 * 1024);
  admission.admitBatch(slow, 40 * 16 * 1024);
  admission.countMessage(slow, 1024 * 1024);
  admission.countOperation(slow);
  expect(() => admission.admitBatch(slow, 10)).toThrow(expect.objectContaining({ reason: "QUOTA_RATE" }));
  expect(refused).toEqual(["7 rate enforced"]);
  const unlimited = caller({}, SHOP + 1);
  for (let i = 0; i < 100; i++) admission.admitBatch(unlimited, 4 * 1024 * 1024);
});

test("a claim is refused once the tenant stores as much as its quota", () => {
  const full = newAdmission({ records: 5, storedBytes: 100 }).admission;
  full.admitRecord(caller({ liveRecords: 6, storedBytes: 101 }));
  expect(() => full.admitRecord(caller({ liveRecords: 5 }))).toThrow(
    expect.objectContaining({ reason: "QUOTA_RECORDS", metadata: { scope: "service", limit: "5" } }),
  );
  expect(() => full.admitRecord(caller({ storedBytes: 100 }))).toThrow(
    expect.objectContaining({ reason: "QUOTA_BYTES" }),
  );
});

test("claims in flight reserve room for a record each, and return it if they add none", () => {
  const { admission, changes } = newAdmission({ records: 3, storedBytes: 0 });
  const shop = caller({ liveRecords: 5 });
  const first = admission.admitRecord(shop);
  const second = admission.admitRecord(shop);
  expect(admission.admitRecord(shop)).toBeUndefined();
  first?.(false);
  const third = admission.admitRecord(shop);
  expect(third).toBeDefined();
  expect(admission.admitRecord(shop)).toBeUndefined();
  second?.(true);
  expect(changes).toEqual([{ tenantId: SHOP, records: 1, storedBytes: 0 }]);
});

test("a claim without room that would add a record is refused; a dry run admits it", () => {
  const { admission } = newAdmission({ records: 4, storedBytes: 0 });
  const shop = caller({ liveRecords: 5 });
  admission.admitRecord(shop);
  expect(() => admission.refuseRecord(shop)).toThrow(expect.objectContaining({ reason: "QUOTA_RECORDS" }));
  const dry = caller({ liveRecords: 5, dryRun: true });
  expect(admission.admitRecord(dry)).toBeDefined();
});

test("totals are counted only for tenants with a quota of them", () => {
  const { admission, changes } = newAdmission();
  const result = {
    kind: "success",
    payload: Buffer.from("paid"),
    contentType: "",
    metadataJson: '{"a":"b"}',
  } as const;
  admission.admitRecord(caller({ operationsPerSecond: 1 }))?.(true);
  admission.resultAdded(caller({}), result);
  expect(changes).toEqual([]);
  admission.admitRecord(caller({ storedBytes: 1 }))?.(true);
  admission.resultAdded(caller({ liveRecords: 1 }), result);
  expect(changes).toEqual([
    { tenantId: SHOP, records: 1, storedBytes: 0 },
    { tenantId: SHOP, records: 0, storedBytes: 4 + '{"a":"b"}'.length },
  ]);
});
