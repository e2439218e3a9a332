import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Policy_LateKeys } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { GetUsageRequest_Grouping } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { createRecentRefusals } from "../../server/src/admin/usage/recent-refusals.ts";
import { createRecentUse } from "../../server/src/admin/usage/recent-use.ts";
import { createUsageFlusher } from "../../server/src/admin/usage/usage-flusher.ts";
import { createUsageMeter } from "../../server/src/admin/usage/usage-meter.ts";
import type { Pool } from "../../server/src/database/pool.ts";
import {
  type AdministeredTenant,
  type AdminWorld,
  connectAdmin,
  createWorld,
  describeAdministration,
} from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { fingerprintOf, grant, ORDER, success } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { awaitYoungHour } from "../support/database/time.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

/** Stored at once, so that a test need not wait. */
const EAGER = { ONCEWARD_USAGE_FLUSH: "100ms" };
/** A grouping of a later version of the contract. */
const UNKNOWN_GROUPING = 99 as GetUsageRequest_Grouping;
const REPLICA = { id: "00000000-0000-4000-8000-000000000001", version: "test" };

/** The tenant's usage once as many claims are in it as were made; what is counted comes before the last of them. */
async function usageAfter({ admin }: AdministeredTenant, claims: bigint): Promise<readonly UsageHour[]> {
  let hours: readonly UsageHour[] = [];
  const stored = async () => {
    ({ hours } = await admin.getUsage({}));
    return hours.reduce((sum, hour) => sum + hour.claims, 0n);
  };
  await expect.poll(async () => (await stored()) >= claims).toBe(true);
  expect(hours.reduce((sum, hour) => sum + hour.claims, 0n)).toBe(claims);
  return hours;
}

describeAdministration("usage", { env: EAGER }, (world: () => AdminWorld) => {
  beforeEach(awaitYoungHour);

  test("counts the outcomes of a namespace's claims and settlements", async () => {
    const tenant = await world().administeredTenant();
    const { caller } = tenant;
    const fingerprint = fingerprintOf("a request");
    const first = await grant(caller, { fingerprint });
    await caller.claim({ ...ORDER, fingerprint });
    await endLeases(world().database, tenant.tenant);
    const second = await grant(caller, { fingerprint });
    await errorOf(caller.complete({ ...ORDER, fencingToken: first.fencingToken, result: success("late") }));
    await caller.complete({ ...ORDER, fencingToken: second.fencingToken, result: success("done") });
    await caller.claim({ ...ORDER, fingerprint });
    await errorOf(caller.claim({ ...ORDER, fingerprint: fingerprintOf("another request") }));

    const [hour] = await usageAfter(tenant, 5n);
    expect(hour).toMatchObject({
      namespace: ORDER.namespace,
      claims: 5n,
      granted: 2n,
      reclaims: 1n,
      inProgress: 1n,
      replayed: 1n,
      mismatches: 1n,
      fenced: 1n,
      completions: 1n,
      settled: 0n,
      ambiguous: 0n,
    });
  });

  test("counts what a later claim settled, once, and no search that found nothing", async () => {
    const tenant = await world().administeredTenant();
    const { caller } = tenant;
    await grant(caller);
    await endLeases(world().database, tenant.tenant);
    const search = await grant(caller, { acceptAmbiguous: true });
    await caller.release({ ...ORDER, fencingToken: search.fencingToken, giveBack: true });
    const again = { ...ORDER, fencingToken: (await grant(caller, { acceptAmbiguous: true })).fencingToken };
    for (const _ of ["first", "repeat"]) await caller.release(again);
    await caller.complete({
      ...ORDER,
      fencingToken: (await grant(caller)).fencingToken,
      result: success(""),
    });
    await caller.claim(ORDER);
    expect(await usageAfter(tenant, 5n)).toMatchObject([{ settled: 1n, completions: 1n }]);
  });

  test("counts too old keys, refused or granted with RUN, and those of unknown time", async () => {
    const tenant = await world().administeredTenant();
    const old = { keyCreatedAt: timestampFromMs(Date.now() - 400 * 86_400_000) };
    await grant(tenant.caller, { ...old, key: "granted" });
    await grant(tenant.caller, { key: "unknown" });
    const namespace = { name: ORDER.namespace, policy: { lateKeys: Policy_LateKeys.REFUSE } };
    await tenant.admin.updateNamespace({ namespace, allowMissing: true });
    expect(await errorOf(tenant.caller.claim({ ...ORDER, ...old }))).toMatchObject({
      reason: "KEY_TOO_OLD",
    });
    expect(await usageAfter(tenant, 3n)).toMatchObject([
      { granted: 2n, lateKeysRefused: 1n, lateKeysGranted: 1n, withoutKeyTime: 1n },
    ]);
    const { hours } = await tenant.admin.getUsage({ grouping: GetUsageRequest_Grouping.HOUR });
    expect(hours).toMatchObject([{ lateKeysRefused: 1n, lateKeysGranted: 1n, withoutKeyTime: 1n }]);
  });

  test("counts each item of a batch", async () => {
    const tenant = await world().administeredTenant();
    const claim = (key: string) => ({ request: { case: "claim" as const, value: { ...ORDER, key } } });
    await tenant.caller.batch({ items: [claim("a"), claim("b"), claim("a")] });
    expect(await usageAfter(tenant, 3n)).toMatchObject([{ granted: 2n, inProgress: 1n }]);
  });

  test("shows how long after the first claim of their key repeats arrived", async () => {
    const tenant = await world().administeredTenant();
    await grant(tenant.caller);
    await tenant.caller.claim(ORDER);
    await ageRecords(world().database, tenant.tenant, 1500);
    await tenant.caller.claim({ ...ORDER, acceptAmbiguous: false });
    const [hour] = await usageAfter(tenant, 3n);
    const repeats = hour?.repeatLateness.filter((bucket) => bucket.repeats > 0n);
    expect(repeats).toMatchObject([
      { upTo: { seconds: 1n }, repeats: 1n },
      { upTo: { seconds: 1677n }, repeats: 1n },
    ]);
    expect(hour?.repeatLateness.at(-1)?.upTo).toBeUndefined();
  });

  test("is listed by hour and namespace, page by page, and by namespace alone", async () => {
    const tenant = await world().administeredTenant();
    for (const namespace of ["c", "a", "b"]) await tenant.caller.claim({ namespace, key: "order-1" });
    // A later tenant's rows come after this one's.
    const later = await world().administeredTenant();
    await grant(later.caller);
    await usageAfter(later, 1n);
    await usageAfter(tenant, 3n);
    await world().database.query(
      `insert into usage_hours (tenant_id, hour, namespace, claims, repeat_lateness)
       select tenant_id, hour - interval '2 hours', 'b', 7, repeat_lateness from usage_hours
        where tenant_id = $1 and namespace = 'b'`,
      [tenant.tenant.id],
    );
    const seen = await readPages("hours", (pageToken) => tenant.admin.getUsage({ pageSize: 3, pageToken }));
    expect(seen.map(({ namespace, claims }) => [namespace, claims])).toEqual([
      ["b", 7n],
      ["a", 1n],
      ["b", 1n],
      ["c", 1n],
    ]);
    const before = seen.at(-1)?.hour;
    if (before === undefined) throw new Error("an hour is missing");
    expect((await tenant.admin.getUsage({ namespace: "b" })).hours.map(({ claims }) => claims)).toEqual([
      7n,
      1n,
    ]);
    expect((await tenant.admin.getUsage({ before })).hours.map(({ claims }) => claims)).toEqual([7n]);
    expect((await tenant.admin.getUsage({ after: before })).hours).toHaveLength(3);

    const grouping = GetUsageRequest_Grouping.HOUR;
    const sums = await readPages("hours", async (pageToken) => {
      const page = await tenant.admin.getUsage({ grouping, pageSize: 1, pageToken });
      expect(page.hours.length).toBeLessThanOrEqual(1);
      return page;
    });
    expect(sums).toMatchObject([
      { namespace: "", claims: 7n, granted: 0n, repeatLateness: [] },
      { namespace: "", claims: 3n, granted: 3n, hour: before },
    ]);
    const sumsOf = async (filter: object) =>
      (await tenant.admin.getUsage({ grouping, ...filter })).hours.map((sum) => [sum.namespace, sum.claims]);
    expect(await sumsOf({ namespace: "b" })).toEqual([
      ["b", 7n],
      ["b", 1n],
    ]);
    expect(await sumsOf({ namespace: "c", pageSize: 1 })).toEqual([["c", 1n]]);
    expect(await sumsOf({ before })).toEqual([["", 7n]]);
    expect(await sumsOf({ after: before })).toEqual([["", 3n]]);
    const ofOther = tenant.admin.getUsage({ grouping: UNKNOWN_GROUPING });
    expect(await errorOf(ofOther)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["grouping"] });
  });
});

describe("usage of several replicas", () => {
  test("adds up exactly, and no count is lost when they drain", async () => {
    const database = await createDatabaseOfTest();
    // Never stored while they serve: only when they drain.
    const late = { ONCEWARD_USAGE_FLUSH: "1m" };
    const replicas = [await startTestServer(database.url, late), await startTestServer(database.url, late)];
    const [one, other] = replicas;
    if (one === undefined || other === undefined) throw new Error("a replica is missing");
    const { tenant } = await createWorld(database, one).administeredTenant();
    const callers = [connectClient(one, tenant.apiKey), connectClient(other, tenant.apiKey)];
    const calls = Array.from({ length: 300 }, (_, i) =>
      callers[i % 2]?.claim({ ...ORDER, key: `order-${i % 50}` }),
    );
    await Promise.all(calls);
    await Promise.all(replicas.map((replica) => replica.stop()));

    const reader = await startTestServer(database.url);
    onTestFinished(() => reader.stop());
    const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    const { hours } = await connectAdmin(reader, adminKey).getUsage({});
    expect(hours.reduce((sum, hour) => sum + hour.claims, 0n)).toBe(300n);
    expect(hours.reduce((sum, hour) => sum + hour.granted, 0n)).toBe(50n);
  });
});

/** A tenant's usage, and what stores it every millisecond through what `through` makes of the pool. */
async function newFlusher({ through = (pool: Pool) => pool, onFailed = () => {} } = {}) {
  const database = await createDatabaseOfTest();
  const { id: tenantId } = await createTenant(database);
  const pool = openStorePool(database);
  const meter = createUsageMeter(() => {});
  const recent = createRecentUse(Date.now());
  const failures: unknown[] = [];
  const flusher = createUsageFlusher({
    pool: through(pool),
    meter,
    recent,
    refusals: createRecentRefusals(),
    replica: REPLICA,
    intervalMs: 1,
    onFailed: (error) => {
      failures.push(error);
      onFailed();
    },
  });
  const swept = async () => {
    const [row] = await database.query<{ swept: number }>("select sum(swept)::int as swept from usage_hours");
    return row?.swept ?? 0;
  };
  return { database, id: { tenantId, namespace: "charges" }, meter, recent, failures, flusher, swept };
}

test("a flush whose reply was lost is not counted twice, and later counts are not lost", async () => {
  let repliesToLose = 2;
  const { id, meter, failures, flusher, swept } = await newFlusher({
    through: (pool) => ({
      ...pool,
      async run(...statement) {
        const rows = await pool.run<never>(...statement);
        if (repliesToLose-- > 0) throw new Error("the reply was lost");
        return rows;
      },
    }),
  });
  meter.count(id, "swept", 3);
  flusher.start();
  while (failures.length < 1) await new Promise(setImmediate);
  meter.count(id, "swept", 4);
  while (failures.length < 2) await new Promise(setImmediate);
  await flusher.stop();
  expect(await swept()).toBe(7);
});

test("a minute that has ended is stored by a later flush if the first one fails", async () => {
  const { database, id, meter, recent, failures, flusher } = await newFlusher();
  meter.count(id, "claims");
  recent.add(meter.take(1));
  recent.endSlot(Date.now() - 60_000);
  await database.query("alter table usage_minutes rename to minutes_away");
  flusher.start();
  await expect.poll(() => failures.length).toBeGreaterThan(1);
  await database.query("alter table minutes_away rename to usage_minutes");
  await flusher.stop();
  const stored = "select counts -> $1 -> 0 as claims from usage_minutes";
  expect(await database.query(stored, [String(id.tenantId)])).toEqual([{ claims: 1 }]);
});

test("flushes that fail repeatedly store everything once they succeed, and each namespace once", async () => {
  const count = () => meter.count(id, "swept");
  const { database, id, meter, failures, flusher, swept } = await newFlusher({ onFailed: () => count() });
  await database.query("alter table usage_hours rename to usage_away");
  count();
  flusher.start();
  while (failures.length < 5) await new Promise(setImmediate);
  expect(meter.size()).toBe(1);
  await database.query("alter table usage_away rename to usage_hours");
  await expect.poll(swept).toBeGreaterThan(5);
  await flusher.stop();
  expect(await swept()).toBe(failures.length + 1);
});
