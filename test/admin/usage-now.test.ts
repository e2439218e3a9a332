import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { ListTenantUsageRequest_Order } from "../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { type AdminWorld, connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { fingerprintOf, grant, ORDER } from "../support/calls/verbs.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey, type TestTenant } from "../support/servers/tenants.ts";

/** Stored at once, so that a test need not wait. */
const EAGER = { ONCEWARD_USAGE_FLUSH: "100ms" };

describeAdministration("what happens now", { env: EAGER }, (world: () => AdminWorld) => {
  const setLabel = ({ id }: TestTenant, label: string) =>
    world().database.query("update api_keys set label = $2 where tenant_id = $1 and role = 'CALLER'", [
      ...[id, label],
    ]);

  test("what is refused is told apart by cause and API key: too old, mismatch, late worker", async () => {
    const tenant = await world().administeredTenant({ key_retention_s: 60, late_keys: "REFUSE" });
    await setLabel(tenant.tenant, "checkout");
    const { fencingToken } = await grant(tenant.caller, { fingerprint: fingerprintOf("one") });
    const keyCreatedAt = timestampFromMs(Date.now() - 3_600_000);
    const reasons = [
      await errorOf(tenant.caller.claim({ ...ORDER, key: "old", keyCreatedAt })),
      await errorOf(tenant.caller.claim({ ...ORDER, fingerprint: fingerprintOf("two") })),
      await errorOf(tenant.caller.extendLease({ ...ORDER, fencingToken: fencingToken - 1n })),
      await errorOf(tenant.caller.claim({ ...ORDER, key: "" })),
    ].map(({ reason }) => reason);
    expect(reasons).toEqual(["KEY_TOO_OLD", "FINGERPRINT_MISMATCH", "CLAIM_SUPERSEDED", "INVALID_REQUEST"]);
    const now = async () => await tenant.admin.getUsageNow({});
    // A flush takes the counts before it takes the refusals: the last refusal may be in a flush before its count.
    await expect
      .poll(async () => [(await now()).refused.length, (await now()).total?.fenced], { interval: 50 })
      .toEqual([reasons.length, 1n]);
    const { refused, total } = await now();
    expect(refused.map(({ reason }) => reason).sort()).toEqual(reasons.toSorted());
    expect(refused.every(({ label, limit }) => label === "checkout" && limit === undefined)).toBe(true);
    // The claims that got an answer: of these two were refused.
    expect(total).toMatchObject({ claims: 3n, lateKeysRefused: 1n, mismatches: 1n, fenced: 1n });
    expect(total?.refusedPerSecond).toBe(0);
  });

  test("a tenant sees what its quotas refused, by reason and namespace, and how long claims took", async () => {
    const tenant = await world().administeredTenant({ quota_live_records: 2 });
    await setLabel(tenant.tenant, "checkout");
    await grant(tenant.caller);
    await tenant.caller.claim(ORDER);
    await grant(tenant.caller, { key: "order-3" });
    expect(await errorOf(tenant.caller.claim({ namespace: "payouts", key: "order-2" }))).toMatchObject({
      reason: "QUOTA_RECORDS",
    });
    await expect
      .poll(async () => (await tenant.admin.getUsageNow({})).total, { interval: 50 })
      .toMatchObject({ claims: 3n, duplicates: 1n, refusedByRecords: 1n, refusedByRate: 0n });
    const { total, namespaces } = await tenant.admin.getUsageNow({});
    expect(total?.claimsPerSecond).toBeGreaterThan(3 / 65);
    // Claims, and what a quota refused, are apart: three to one.
    expect(total?.claimsPerSecond).toBeCloseTo(3 * (total?.refusedPerSecond ?? 0), 6);
    expect(total?.medianLatency?.nanos).toBeGreaterThan(0);
    expect(namespaces.map(({ namespace, refusedByRecords }) => [namespace, refusedByRecords])).toEqual([
      [ORDER.namespace, 0n],
      ["payouts", 1n],
    ]);
    const of = async (namespace: string) => await tenant.admin.getUsageNow({ namespace });
    expect(await of("payouts")).toMatchObject({
      total: { refusedByRecords: 1n },
      namespaces: [],
      minutes: [],
    });
    expect((await of("unused")).total).toMatchObject({ claims: 0n, claimsPerSecond: 0 });
    const refused = { ...{ namespace: "payouts", reason: "QUOTA_RECORDS" }, operations: 1n, limit: 2n };
    const byKey = (await tenant.admin.getUsageNow({})).refused;
    expect(byKey).toMatchObject([{ ...refused, label: "checkout" }]);
    expect((await of("payouts")).refused).toEqual(byKey);
    expect((await of(ORDER.namespace)).refused).toEqual([]);
    const operator = await world().operator();
    const named = await operator.listTenantUsage({ tenant: tenant.tenant.name });
    expect(named.tenants[0]?.refused).toEqual(byKey);
    const { hours } = await tenant.admin.getUsage({});
    expect(
      hours.map(({ namespace, claims, refusedByRecords }) => [namespace, claims, refusedByRecords]),
    ).toEqual([
      [ORDER.namespace, 3n, 0n],
      ["payouts", 0n, 1n],
    ]);
  });

  test("the name of an unknown namespace is not kept", async () => {
    const tenant = await world().administeredTenant({ quota_operations_per_second: 2, quota_burst: 5 });
    for (const key of ["a", "b", "c", "d", "e"]) await grant(tenant.caller, { key });
    const refusedUnder = "not a namespace";
    // More at once than the rate allows, however slow the machine is.
    const excess = Array.from({ length: 50 }, () =>
      errorOf(tenant.caller.claim({ namespace: refusedUnder, key: "order-2" })),
    );
    const refusals = (await Promise.all(excess)).filter(({ reason }) => reason === "QUOTA_RATE");
    expect(refusals).not.toEqual([]);
    const operator = await world().operator();
    // The administrator's own calls are limited as the tenant's are.
    const now = async () => (await operator.listTenantUsage({ tenant: tenant.tenant.name })).tenants[0]?.now;
    await expect
      .poll(async () => (await now())?.refusedByRate, { interval: 50 })
      .toBe(BigInt(refusals.length));
    const { namespaces } = await tenant.admin.getUsageNow({});
    expect(namespaces.map(({ namespace }) => namespace).sort()).toEqual(["", ORDER.namespace]);
    expect(await errorOf(tenant.admin.getUsageNow({ namespace: refusedUnder }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });

  test("calls that a quota would refuse are counted although they are answered", async () => {
    const tenant = await world().administeredTenant({
      quota_operations_per_second: 1,
      quota_burst: 1,
      quota_dry_run: true,
    });
    for (const key of ["a", "b", "c"]) await tenant.caller.claim({ ...ORDER, key });
    await expect
      .poll(async () => (await tenant.admin.getUsageNow({})).total, { interval: 50 })
      .toMatchObject({ claims: 3n, wouldBeRefused: 2n, refusedByRate: 0n });
  });

  test("every replica answers for all of them", async () => {
    const other = await startTestServer(world().database.url, EAGER);
    onTestFinished(() => other.stop());
    const tenant = await world().administeredTenant();
    const key = await createApiKey(world().database, { tenantId: tenant.tenant.id, role: "CALLER" });
    await grant(tenant.caller, { key: "here" });
    await grant(connectClient(other, key), { key: "there" });
    const there = connectAdmin(other, tenant.adminKey);
    for (const admin of [tenant.admin, there])
      await expect.poll(async () => (await admin.getUsageNow({})).total?.claims, { interval: 50 }).toBe(2n);
  });

  test("an ended minute is shown for an hour, with its highest rate, to operators the busiest", async () => {
    const { admin, tenant } = await world().administeredTenant();
    const minute = (ago: number, counts: readonly number[]) =>
      world().database.query(
        `insert into usage_minutes (minute, replica_id, counts)
         values (date_trunc('minute', now()) - make_interval(mins => $1), gen_random_uuid(),
                 jsonb_build_object($2::text, $3::jsonb))`,
        [ago, String(tenant.id), JSON.stringify(counts)],
      );
    await minute(90, [7]);
    await minute(40, [900, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90_000]);
    await minute(3, [60, 6, 1, 2, 30, 0, 0, 0, 5, 0, 9000]);
    await minute(3, [40, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1500]);
    await minute(1, [99]);
    const { minutes } = await admin.getUsageNow({});
    expect(minutes.map(({ claims, peakCallsPerSecond }) => [claims, peakCallsPerSecond])).toEqual([
      [900n, 90],
      [100n, 10.5],
      [99n, 0],
    ]);
    expect(minutes[1]).toMatchObject({
      duplicates: 10n,
      mismatches: 1n,
      lateKeysRefused: 2n,
      refused: 30n,
      wouldBeRefused: 5n,
    });
    const operator = await world().operator();
    const { tenants } = await operator.listTenantUsage({ tenant: tenant.name });
    expect(tenants[0]?.busiestMinute).toMatchObject({ claims: 100n, refused: 30n });
    expect(tenants[0]?.minutes).toEqual(minutes);
    const listed = await operator.listTenantUsage({ search: tenant.name });
    expect(listed.tenants.map((each) => each.minutes)).toEqual([[]]);
  });

  test("an operator lists and searches the noisiest, most refused and most used tenants", async () => {
    const operator = await world().operator();
    const made = await Promise.all([1, 2, 3].map(() => world().administeredTenant()));
    const limited = await world().administeredTenant({ quota_operations_per_second: 1, quota_burst: 1 });
    for (const [index, { caller }] of made.entries())
      for (let n = 0; n <= index; n++) await caller.claim({ ...ORDER, key: `order-${n}` });
    await grant(limited.caller, { key: "order-1" });
    const excess = Array.from({ length: 50 }, () =>
      errorOf(limited.caller.claim({ namespace: ORDER.namespace, key: "" })),
    );
    const refused = (await Promise.all(excess)).filter(({ reason }) => reason === "QUOTA_RATE").length;
    const [one, two, three] = made.map(({ tenant }) => tenant.name) as [string, string, string];
    const four = limited.tenant.name;
    // By rate in one page: rates change between two.
    const list = (order: ListTenantUsageRequest_Order, search = "") =>
      readPages("tenants", (pageToken) => {
        const pageSize = order === ListTenantUsageRequest_Order.RATE ? 200 : 2;
        return operator.listTenantUsage({ order, search, pageSize, pageToken });
      });
    const names = async (order: ListTenantUsageRequest_Order) =>
      (await list(order))
        .map(({ tenant }) => tenant)
        .filter((name) => [one, two, three, four].includes(name));
    await expect
      .poll(() => names(ListTenantUsageRequest_Order.RATE), { interval: 100 })
      .toEqual([four, three, two, one]);
    expect((await names(ListTenantUsageRequest_Order.REFUSED))[0]).toBe(four);
    expect(await names(ListTenantUsageRequest_Order.USAGE)).toEqual([three, two, ...[one, four].sort()]);
    const [found, ...others] = await list(ListTenantUsageRequest_Order.RATE, four.slice(1));
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      tenant: four,
      recentRefused: BigInt(refused),
      now: { refusedByRate: BigInt(refused) },
    });
    expect(await list(ListTenantUsageRequest_Order.UNSPECIFIED, "no-such-tenant")).toEqual([]);
    const unknown = 99 as ListTenantUsageRequest_Order;
    expect(await errorOf(operator.listTenantUsage({ order: unknown, search: "x".repeat(64) }))).toMatchObject(
      {
        fields: ["search", "order"],
      },
    );
  });
});
