import { expect, test } from "vitest";
import { MAX_COUNTED } from "../../server/src/admin/records/count-records.ts";
import { describeAdministration, type TenantAdminClient } from "../support/calls/admin.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { ageRecords, copyRecord, endLeases } from "../support/calls/records.ts";
import { grant, success } from "../support/calls/verbs.ts";
import { setNamespacePolicy } from "../support/servers/tenants.ts";

async function finish(caller: IdempotencyClient, id: { namespace: string; key: string }): Promise<void> {
  const { fencingToken } = await grant(caller, id);
  await caller.complete({ ...id, fencingToken, result: success("done") });
}

describeAdministration("CountRecords", (world) => {
  const counted = async (admin: TenantAdminClient, namespace: string) => {
    const sums = { inProgress: 0n, lapsed: 0n, completed: 0n, released: 0n, ambiguous: 0n };
    const pages = await readPages("counts", async (pageToken) => {
      const { nextPageToken, ...counts } = await admin.countRecords({ namespace, pageToken });
      return { counts: [counts], nextPageToken };
    });
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) {
      for (const page of pages) sums[name] += page[name];
    }
    return sums;
  };

  test("counts each state, and tells since when the oldest ambiguous record is ambiguous", async () => {
    const { tenant, caller, admin } = await world().administeredTenant();
    await setNamespacePolicy(world().database, tenant, "holding", { on_lease_expiry: "HOLD" });
    await grant(caller, { namespace: "holding", key: "running" });
    await finish(caller, { namespace: "holding", key: "done" });
    const { fencingToken } = await grant(caller, { namespace: "holding", key: "released" });
    await caller.release({ namespace: "holding", key: "released", fencingToken });
    await grant(caller, { namespace: "holding", key: "dead-1" });
    await grant(caller, { namespace: "holding", key: "dead-2" });
    await endLeases(world().database, tenant, "dead-1");
    await endLeases(world().database, tenant, "dead-2");
    await grant(caller, { namespace: "other", key: "lapsed" });
    await endLeases(world().database, tenant, "lapsed");
    expect(await counted(admin, "holding")).toEqual({
      inProgress: 1n,
      lapsed: 0n,
      completed: 1n,
      released: 1n,
      ambiguous: 2n,
    });
    expect(await counted(admin, "other")).toMatchObject({ lapsed: 1n, inProgress: 0n });
    expect((await admin.countRecords({ namespace: "holding" })).oldestAmbiguousSince).toBeDefined();
    expect((await admin.countRecords({ namespace: "other" })).oldestAmbiguousSince).toBeUndefined();
  });

  test("counts no record whose retention has ended, and none of another namespace", async () => {
    const { tenant, caller, admin } = await world().administeredTenant();
    await finish(caller, { namespace: "charges", key: "old" });
    await ageRecords(world().database, tenant, 400 * 86_400);
    await finish(caller, { namespace: "charges", key: "new" });
    await finish(caller, { namespace: "charges-2", key: "new" });
    expect(await counted(admin, "charges")).toMatchObject({ completed: 1n });
  });

  test("counts more records than one statement examines", async () => {
    const { tenant, caller, admin } = await world().administeredTenant();
    await finish(caller, { namespace: "many", key: "key" });
    await copyRecord(world().database, tenant, "key", { count: MAX_COUNTED, keySql: "'key-' || n" });
    expect(await counted(admin, "many")).toMatchObject({ completed: BigInt(MAX_COUNTED + 1) });
  });

  test("refuses a namespace that cannot exist", async () => {
    const { admin } = await world().administeredTenant();
    expect(await errorOf(admin.countRecords({ namespace: "No", pageToken: "no" }))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["namespace", "page_token"],
    });
  });
});

describeAdministration("ListUndeclaredNamespaces", (world) => {
  const listed = (admin: TenantAdminClient, pageSize = 0) =>
    readPages("names", (pageToken) => admin.listUndeclaredNamespaces({ pageSize, pageToken }));

  test("lists the namespaces that have records and no policy, in pages", async () => {
    const { tenant, caller, admin } = await world().administeredTenant();
    for (const name of ["declared", "unused"]) {
      await setNamespacePolicy(world().database, tenant, name, { key_retention_s: 3600 });
    }
    for (const namespace of ["chagres", "declared", "refund", "zz"]) {
      await grant(caller, { namespace, key: "1" });
      await grant(caller, { namespace, key: "2" });
    }
    expect(await listed(admin)).toEqual(["chagres", "refund", "zz"]);
    expect(await listed(admin, 1)).toEqual(["chagres", "refund", "zz"]);
    const other = await world().administeredTenant();
    expect(await listed(other.admin)).toEqual([]);
    const beginning = async (namePrefix: string) =>
      (await admin.listUndeclaredNamespaces({ namePrefix })).names;
    expect(await beginning("c")).toEqual(["chagres"]);
    expect(await beginning("refund")).toEqual(["refund"]);
    expect(await beginning("d")).toEqual([]);
    expect(await errorOf(admin.listUndeclaredNamespaces({ namePrefix: "R" }))).toMatchObject({
      fields: ["name_prefix"],
    });
  });
});
