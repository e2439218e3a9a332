import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { ListRecordsRequest } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import {
  type AdministeredTenant,
  connectAdmin,
  describeAdministration,
  type TenantAdminClient,
} from "../helpers/calls/admin.ts";
import { errorOf } from "../helpers/calls/errors.ts";
import { readPages } from "../helpers/calls/pages.ts";
import { ageRecords, endLeases } from "../helpers/calls/records.ts";
import { bytes, complete, fingerprintOf, grant, ORDER, seconds, success } from "../helpers/calls/verbs.ts";
import { createApiKey } from "../helpers/servers/tenants.ts";

/** A state of a later version of the contract. */
const UNKNOWN_STATE = 99 as Record_State;

describeAdministration("ListRecords", (world, transport) => {
  type Filter = Partial<Omit<ListRecordsRequest, "$typeName" | "$unknown">>;

  async function keysOf(admin: TenantAdminClient, filter: Filter = {}): Promise<string[]> {
    const records = await readPages(async (pageToken) => {
      const { records: items, nextPageToken } = await admin.listRecords({ ...filter, pageToken });
      return { items, nextPageToken };
    });
    return records.map(({ namespace, key }) => (namespace === ORDER.namespace ? key : `${namespace}/${key}`));
  }

  async function claimAll({ caller }: AdministeredTenant, keys: readonly string[]): Promise<void> {
    for (const key of keys) await caller.claim({ ...ORDER, key });
  }

  test("lists records by namespace and key, in byte order", async () => {
    const one = await world().administeredTenant();
    await claimAll(one, ["b", "a", "Z", "é", "a-", "😀", "～"]);
    await one.caller.claim({ namespace: "apples", key: "z" });
    await one.caller.claim({ namespace: "charges-2", key: "a" });
    await one.caller.claim({ namespace: "charges.2", key: "a" });
    const all = ["Z", "a", "a-", "b", "é", "～", "😀"];
    expect(await keysOf(one.admin)).toEqual(["apples/z", ...all, "charges-2/a", "charges.2/a"]);
    expect(await keysOf(one.admin, { namespace: "charges" })).toEqual(all);
    for (const pageSize of [1, 2, 3]) {
      expect(await keysOf(one.admin, { namespace: "charges", pageSize })).toEqual(all);
    }
  });

  test("shows every field of a record except payloads, metadata and checkpoints' states", async () => {
    const { caller, admin } = await world().administeredTenant();
    const checkpoint = { name: "charged", state: bytes("secret") };
    const { fencingToken } = await grant(caller, { owner: "worker-1" });
    await caller.extendLease({ ...ORDER, fencingToken, checkpoint });
    const result = { ...success("secret"), contentType: "text/plain", metadata: { status: "secret" } };
    await caller.complete({ ...ORDER, fencingToken, result });
    const { records } = await admin.listRecords({});
    expect(records).toMatchObject([
      {
        ...ORDER,
        state: Record_State.COMPLETED,
        fencingToken,
        owner: "worker-1",
        checkpoint: { name: "charged", state: bytes("") },
        result: { contentType: "text/plain", payload: bytes(""), metadata: {} },
        resultExpired: false,
      },
    ]);
  });

  test("filters by state; a record whose lease expired under HOLD is ambiguous", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    const { admin, caller, tenant } = one;
    await claimAll(one, ["ambiguous", "running", "released", "done"]);
    await endLeases(world().database, tenant, "ambiguous");
    for (const { key, fencingToken } of (await admin.listRecords({})).records) {
      if (key === "released") await caller.release({ ...ORDER, key, fencingToken });
      if (key === "done") await caller.complete({ ...ORDER, key, fencingToken, result: success("done") });
    }
    const of = (state: Record_State) => keysOf(admin, { state });
    expect(await of(Record_State.AMBIGUOUS)).toEqual(["ambiguous"]);
    expect(await of(Record_State.IN_PROGRESS)).toEqual(["running"]);
    expect(await of(Record_State.RELEASED)).toEqual(["released"]);
    expect(await of(Record_State.COMPLETED)).toEqual(["done"]);
    const { records } = await admin.listRecords({ state: Record_State.AMBIGUOUS });
    expect(records).toMatchObject([{ state: Record_State.AMBIGUOUS }]);
  });

  test("filters by the bytes that a key begins with, with and without a namespace", async () => {
    const one = await world().administeredTenant();
    await claimAll(one, ["order", "order-1", "order-2", "order.", "ordes", "Order-1", "order-\u{10ffff}x"]);
    await one.caller.claim({ namespace: "mails", key: "order-9" });
    const orders = ["order-1", "order-2", "order-\u{10ffff}x"];
    expect(await keysOf(one.admin, { namespace: "charges", keyPrefix: "order-" })).toEqual(orders);
    expect(await keysOf(one.admin, { keyPrefix: "order-" })).toEqual([...orders, "mails/order-9"]);
    const beyond = { namespace: "charges", keyPrefix: "order-\u{10ffff}" };
    expect(await keysOf(one.admin, beyond)).toEqual(["order-\u{10ffff}x"]);
    expect(await keysOf(one.admin, { namespace: "charges", keyPrefix: "order%" })).toEqual([]);
  });

  test("filters by the time of the newest claim: from one instant, before another", async () => {
    const one = await world().administeredTenant();
    await claimAll(one, ["old", "new"]);
    await ageRecords(world().database, one.tenant, 3600, "old");
    const halfAnHourAgo = timestampFromMs(Date.now() - 1_800_000);
    expect(await keysOf(one.admin, { claimedAfter: halfAnHourAgo })).toEqual(["new"]);
    expect(await keysOf(one.admin, { claimedBefore: halfAnHourAgo })).toEqual(["old"]);
    const { claimedAt } = firstOf(await one.admin.listRecords({ keyPrefix: "new" }));
    if (claimedAt === undefined) throw new Error("a moment is missing");
    expect(await keysOf(one.admin, { claimedAfter: claimedAt })).toEqual(["new"]);
    expect(await keysOf(one.admin, { claimedBefore: claimedAt })).toEqual(["old"]);
  });

  test("filters by owner, by fingerprint, and by the end of the lease", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    const fingerprint = fingerprintOf("an order");
    await one.caller.claim({ ...ORDER, key: "mine", owner: "worker-1" });
    await one.caller.claim({ ...ORDER, key: "theirs", owner: "worker-2", fingerprint });
    await endLeases(world().database, one.tenant, "theirs");
    expect(await keysOf(one.admin, { owner: "worker-1" })).toEqual(["mine"]);
    expect(await keysOf(one.admin, { owner: "worker" })).toEqual([]);
    expect(await keysOf(one.admin, { fingerprint })).toEqual(["theirs"]);
    expect(await keysOf(one.admin, { fingerprint: fingerprintOf("another") })).toEqual([]);
    const ambiguous = { state: Record_State.AMBIGUOUS };
    const [now, hourAgo] = [Date.now() + 60_000, Date.now() - 3_600_000].map(timestampFromMs);
    expect(await keysOf(one.admin, { ...ambiguous, leaseExpiredBefore: now })).toEqual(["theirs"]);
    expect(await keysOf(one.admin, { ...ambiguous, leaseExpiredBefore: hourAgo })).toEqual([]);
    expect(
      await errorOf(one.admin.listRecords({ owner: "x".repeat(129), fingerprint: bytes("short") })),
    ).toMatchObject({ reason: "INVALID_REQUEST", fields: ["owner", "fingerprint"] });
  });

  test("never shows forgotten or expired records", async () => {
    const one = await world().administeredTenant({ key_retention_s: 3600 });
    await claimAll(one, ["forgotten", "expired", "there"]);
    await one.admin.resolveRecord({
      ...ORDER,
      key: "forgotten",
      reason: "a test",
      resolution: { case: "forget", value: {} },
    });
    await ageRecords(world().database, one.tenant, 3601, "expired");
    expect(await keysOf(one.admin)).toEqual(["there"]);
  });

  test("continues after the last page, whatever was inserted or removed in between", async () => {
    const one = await world().administeredTenant();
    await claimAll(one, ["b", "d", "f", "h"]);
    const first = await one.admin.listRecords({ pageSize: 2 });
    expect(first.records.map(({ key }) => key)).toEqual(["b", "d"]);
    await claimAll(one, ["a", "c", "e", "g"]);
    await world().database.query("delete from records where tenant_id = $1 and key in ('d', 'f')", [
      one.tenant.id,
    ]);
    const rest = await readPages(async (pageToken) => {
      const { records: items, nextPageToken } = await one.admin.listRecords({ pageSize: 1, pageToken });
      return { items, nextPageToken };
    }, first.nextPageToken);
    expect(rest.map(({ key }) => key)).toEqual(["e", "g", "h"]);
  });

  test("has a next page exactly if there are more records, and limits a page to 1,000", async () => {
    const one = await world().administeredTenant();
    await fill(one, 1001);
    const first = await one.admin.listRecords({ pageSize: 5000 });
    expect(first.records).toHaveLength(1000);
    const last = await one.admin.listRecords({ pageSize: 5000, pageToken: first.nextPageToken });
    expect(last).toMatchObject({ nextPageToken: "", records: [{ key: "key-01001" }] });
    expect((await one.admin.listRecords({})).records).toHaveLength(50);
    const { nextPageToken } = await one.admin.listRecords({ keyPrefix: "key-0000", pageSize: 9 });
    expect(nextPageToken).toBe("");
  });

  test("finds rare matches beyond the records that one statement examines", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await fill(one, 12_000);
    for (const key of ["key-00001", "key-05000", "key-05001", "key-12000"]) {
      await endLeases(world().database, one.tenant, key);
    }
    const state = Record_State.AMBIGUOUS;
    const { records, nextPageToken } = await one.admin.listRecords({ state });
    expect(records.map(({ key }) => key)).toEqual(["key-00001", "key-05000", "key-05001", "key-12000"]);
    expect(nextPageToken).toBe("");
    expect(await keysOf(one.admin, { state, pageSize: 2 })).toHaveLength(4);
    expect(await keysOf(one.admin, { state, pageSize: 1 })).toHaveLength(4);
  });

  test("refuses malformed fields, all in one error", async () => {
    const { admin } = await world().administeredTenant();
    const call = admin.listRecords({
      pageSize: -1,
      pageToken: "made-up",
      namespace: "No",
      state: UNKNOWN_STATE,
      keyPrefix: "\u0000",
    });
    expect(await errorOf(call)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["namespace", "key_prefix", "state", "page_size", "page_token"],
    });
  });

  test("accepts a page token only for the same request of the same tenant", async () => {
    const mine = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    for (const one of [mine, theirs]) await claimAll(one, ["a", "b"]);
    const { nextPageToken } = await mine.admin.listRecords({ pageSize: 1, namespace: "charges" });
    const others = [
      () => mine.admin.listRecords({ pageSize: 1, pageToken: nextPageToken }),
      () => mine.admin.listRecords({ namespace: "charges", keyPrefix: "b", pageToken: nextPageToken }),
      () => theirs.admin.listRecords({ pageSize: 1, namespace: "charges", pageToken: nextPageToken }),
      () => mine.admin.listApiKeys({ pageToken: nextPageToken }),
    ];
    for (const call of others) {
      expect(await errorOf(call())).toMatchObject({ reason: "INVALID_REQUEST", fields: ["page_token"] });
    }
    expect(await keysOf(theirs.admin)).toEqual(["a", "b"]);
  });

  test("shows an administrator limited to namespaces only those", async () => {
    const { caller, tenant } = await world().administeredTenant();
    await complete(caller);
    const limited = connectAdmin(
      world().server,
      await createApiKey(world().database, {
        tenantId: tenant.id,
        role: "TENANT_ADMIN",
        namespaces: ["charges"],
      }),
      transport,
    );
    expect(await keysOf(limited, { namespace: "charges" })).toEqual([ORDER.key]);
    for (const filter of [{}, { namespace: "mails" }]) {
      expect(await errorOf(limited.listRecords(filter))).toMatchObject({ reason: "NAMESPACE_DENIED" });
    }
  });

  /** Gives a tenant so many records like its one, in one go. */
  async function fill(one: AdministeredTenant, count: number): Promise<void> {
    await one.caller.claim({ ...ORDER, key: "key-00001", lease: seconds(600) });
    const { database } = world();
    const columns = await database.query<{ name: string }>(
      `select column_name as name from information_schema.columns
        where table_name = 'records' and column_name <> 'key' order by ordinal_position`,
    );
    const names = columns.map(({ name }) => name).join(", ");
    await database.query(
      `insert into records (${names}, key)
       select ${names}, 'key-' || to_char(i, 'FM00000')
         from records, generate_series(2, $2) i where tenant_id = $1`,
      [one.tenant.id, count],
    );
  }

  function firstOf<Item>({ records: [first] }: { readonly records: readonly Item[] }): Item {
    if (first === undefined) throw new Error("there is no record");
    return first;
  }
});
