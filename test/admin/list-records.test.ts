import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import {
  type ListRecordsRequest,
  ListRecordsRequest_Order,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import {
  type AdministeredTenant,
  describeAdministration,
  type TenantAdminClient,
} from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { ageRecords, copyRecord, endLeases } from "../support/calls/records.ts";
import { FORGET, RELEASE, resolve } from "../support/calls/resolutions.ts";
import { bytes, fingerprintOf, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";

/** A state of a later version of the contract. */
const UNKNOWN_STATE = 99 as Record_State;
/** The ambiguous records, the oldest first. */
const OLDEST_FIRST = { state: Record_State.AMBIGUOUS, order: ListRecordsRequest_Order.LEASE_EXPIRY };

describeAdministration("ListRecords", (world, _transport) => {
  type Filter = Partial<Omit<ListRecordsRequest, "$typeName" | "$unknown">>;

  async function keysOf(admin: TenantAdminClient, filter: Filter = {}, firstToken = ""): Promise<string[]> {
    const page = (pageToken: string) => admin.listRecords({ ...filter, pageToken });
    const records = await readPages("records", page, firstToken);
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

  test("finds the beginning of keys in every namespace, page by page, without reading other keys", async () => {
    const one = await world().administeredTenant();
    await fill(one, 6000);
    for (const namespace of ["apples", "charges", "mails", "zoo"]) {
      for (const key of ["order-1", "order-2", "other"]) await one.caller.claim({ namespace, key });
    }
    const of = (namespace: string) => ["order-1", "order-2"].map((key) => `${namespace}/${key}`);
    const orders = [...of("apples"), "order-1", "order-2", ...of("mails"), ...of("zoo")];
    for (const pageSize of [1, 2, 3, 8, 50]) {
      expect(await keysOf(one.admin, { keyPrefix: "order-", pageSize })).toEqual(orders);
    }
    const { records, nextPageToken } = await one.admin.listRecords({ keyPrefix: "order-", pageSize: 8 });
    expect([records.length, nextPageToken]).toEqual([8, ""]);
    expect(await keysOf(one.admin, { keyPrefix: "order-", state: Record_State.COMPLETED })).toEqual([]);
    expect(await keysOf(one.admin, { keyPrefix: "orders" })).toEqual([]);
  });

  test("returns the states of ambiguous records' checkpoints if asked, at most 100 records a page", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await fill(one, 101);
    const { fencingToken } = await grant(one.caller, { key: "submitted" });
    const checkpoint = { name: "submitted", state: bytes('{"transfer":"tr_7"}') };
    await one.caller.extendLease({ ...ORDER, key: "submitted", fencingToken, checkpoint });
    await endLeases(world().database, one.tenant);
    const asked = { ...OLDEST_FIRST, checkpointStates: true };
    const [first] = (await one.admin.listRecords({ ...asked, checkpoint: "submitted" })).records;
    expect(first?.checkpoint).toMatchObject(checkpoint);
    const [without] = (await one.admin.listRecords({ ...OLDEST_FIRST, checkpoint: "submitted" })).records;
    expect(without?.checkpoint).toMatchObject({ name: "submitted", state: bytes("") });
    const page = await one.admin.listRecords({ ...asked, pageSize: 1000 });
    expect(page.records).toHaveLength(100);
    for (const call of [
      one.admin.listRecords({ checkpointStates: true }),
      one.admin.listRecords({ key: "submitted", checkpointStates: true }),
    ]) {
      expect(await errorOf(call)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["checkpoint_states"] });
    }
    const other = { ...OLDEST_FIRST, pageToken: page.nextPageToken };
    expect(await errorOf(one.admin.listRecords(other))).toMatchObject({ fields: ["page_token"] });
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

  test("lists ambiguous records by lease end to the microsecond, then namespace and key", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await claimAll(one, ["new", "tied-b", "tied-a", "tied-c", "oldest", "held", "ended"]);
    await one.caller.claim({ namespace: "apples", key: "tied" });
    const hourAgo = Date.now() - 3_600_000;
    for (const key of ["tied", "tied-a", "tied-b", "tied-c"]) await endLease(one, key, hourAgo);
    await endLease(one, "new", hourAgo, 1);
    await endLease(one, "oldest", hourAgo, -1);
    await endLease(one, "ended", hourAgo, -2);
    await world().database.query(
      "update records set expires_at = lease_expires_at where tenant_id = $1 and key = 'ended'",
      [one.tenant.id],
    );
    const all = ["oldest", "apples/tied", "tied-a", "tied-b", "tied-c", "new"];
    for (const pageSize of [1, 2, 3, 6, 7]) {
      expect(await keysOf(one.admin, { ...OLDEST_FIRST, pageSize })).toEqual(all);
    }
    const tied = all.slice(1, -1);
    const of = (filter: Filter) => keysOf(one.admin, { ...OLDEST_FIRST, pageSize: 1, ...filter });
    expect(await of({ keyPrefix: "tied" })).toEqual(tied);
    expect(await of({ namespace: "charges", keyPrefix: "tied" })).toEqual(tied.slice(1));
    expect(await of({ leaseExpiredBefore: timestampFromMs(hourAgo) })).toEqual(["oldest"]);
    expect(await of({ owner: "none" })).toEqual([]);
    expect((await one.admin.listRecords({ ...OLDEST_FIRST, pageSize: 6 })).nextPageToken).toBe("");
  });

  test("the oldest's next page omits resolved and extended records, and has later ones", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    const keys = ["a", "b", "c", "d", "e", "f"];
    await claimAll(one, [...keys, "later"]);
    const startMs = Date.now() - 3_600_000;
    for (const [n, key] of keys.entries()) await endLease(one, key, startMs + n * 1000);
    const first = await one.admin.listRecords({ ...OLDEST_FIRST, pageSize: 2 });
    expect(first.records.map(({ key }) => key)).toEqual(["a", "b"]);
    const token = async (key: string) =>
      firstOf(await one.admin.listRecords({ keyPrefix: key })).fencingToken;
    for (const key of ["b", "c"]) await resolve(one.admin, RELEASE, { key });
    await one.caller.complete({ ...ORDER, key: "d", fencingToken: await token("d"), result: success("x") });
    await one.caller.extendLease({ ...ORDER, key: "e", fencingToken: await token("e") });
    await endLeases(world().database, one.tenant, "later");
    const rest = await keysOf(one.admin, { ...OLDEST_FIRST, pageSize: 1 }, first.nextPageToken);
    expect(rest).toEqual(["f", "later"]);
    expect(await keysOf(one.admin, OLDEST_FIRST)).toEqual(["a", "f", "later"]);
  });

  test("filters by the last checkpoint, and names each namespace's provider link", async () => {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await claimAll(one, ["before"]);
    const { fencingToken } = await grant(one.caller, { key: "submitted" });
    const checkpoint = { name: "submitted", state: bytes("") };
    await one.caller.extendLease({ ...ORDER, key: "submitted", fencingToken, checkpoint });
    await endLeases(world().database, one.tenant);
    expect(await keysOf(one.admin, { ...OLDEST_FIRST, checkpoint: "submitted" })).toEqual(["submitted"]);
    expect(await keysOf(one.admin, { checkpoint: "submitted" })).toEqual(["submitted"]);
    expect((await one.admin.listRecords(OLDEST_FIRST)).providerLinks).toEqual({});

    const providerLink = "https://pay.example/{key}";
    await one.admin.updateNamespace({
      namespace: { name: ORDER.namespace, policy: { providerLink } },
      allowMissing: true,
    });
    const linksOf = async (filter: Filter) => (await one.admin.listRecords(filter)).providerLinks;
    await expect.poll(() => linksOf(OLDEST_FIRST)).toEqual({ [ORDER.namespace]: providerLink });
    expect(await linksOf({})).toEqual({});
    const { providerLink: ofRecord } = await one.admin.getRecord({ ...ORDER, key: "submitted" });
    expect(ofRecord).toBe(providerLink);
  });

  test("never shows forgotten or expired records", async () => {
    const one = await world().administeredTenant({ key_retention_s: 3600 });
    await claimAll(one, ["forgotten", "expired", "there"]);
    await resolve(one.admin, FORGET, { key: "forgotten" });
    await ageRecords(world().database, one.tenant, 3601, "expired");
    expect(await keysOf(one.admin)).toEqual(["there"]);
  });

  test("continues after the last page, also if records were inserted and removed in between", async () => {
    const one = await world().administeredTenant();
    await claimAll(one, ["b", "d", "f", "h"]);
    const first = await one.admin.listRecords({ pageSize: 2 });
    expect(first.records.map(({ key }) => key)).toEqual(["b", "d"]);
    await claimAll(one, ["a", "c", "e", "g"]);
    await world().database.query("delete from records where tenant_id = $1 and key in ('d', 'f')", [
      one.tenant.id,
    ]);
    expect(await keysOf(one.admin, { pageSize: 1 }, first.nextPageToken)).toEqual(["e", "g", "h"]);
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
    await endLeases(world().database, one.tenant);
    expect(await keysOf(one.admin, { ...OLDEST_FIRST, keyPrefix: "key-12" })).toEqual(["key-12000"]);
    const count = { reason: "x", resolution: RELEASE, validateOnly: true };
    expect(await one.admin.resolveAmbiguousRecords(count)).toMatchObject({
      matching: 12_000n,
      isLowerBound: false,
    });
  });

  test("finds an exact key in every namespace, beyond those that one statement examines", async () => {
    const one = await world().administeredTenant();
    const other = await world().administeredTenant();
    await claimAll(one, ["order-1", "order-10"]);
    await claimAll(other, ["order-1"]);
    const columns = await world().database.query<{ name: string }>(
      `select column_name as name from information_schema.columns
        where table_schema = 'public' and table_name = 'records' and column_name not in ('namespace', 'key')
          and is_generated = 'NEVER'`,
    );
    const names = columns.map(({ name }) => name).join(", ");
    await world().database.query(
      `insert into records (${names}, namespace, key)
       select ${names}, 'crowd-' || lpad(n::text, 6, '0'), case when n in (5, 4500) then 'order-1' else 'order-2' end
         from records, generate_series(1, 4500) n
        where tenant_id = $1 and key = 'order-1'`,
      [one.tenant.id],
    );
    const found = ["order-1", "crowd-000005/order-1", "crowd-004500/order-1"];
    for (const pageSize of [1, 2, 50]) {
      expect(await keysOf(one.admin, { key: "order-1", pageSize })).toEqual(found);
    }
    expect(await keysOf(one.admin, { key: "order-1", namespace: "charges" })).toEqual(["order-1"]);
    expect(await keysOf(one.admin, { key: "order-1", namespace: "refunds" })).toEqual([]);
    expect(await keysOf(one.admin, { key: "order" })).toEqual([]);
    await world().database.query(
      "update records set state = 0 where tenant_id = $1 and namespace = 'charges'",
      [one.tenant.id],
    );
    expect(await keysOf(one.admin, { key: "order-1" })).toEqual(found.slice(1));
    const more = { key: "order-1", keyPrefix: "order", owner: "worker-1", state: Record_State.COMPLETED };
    expect(await errorOf(one.admin.listRecords(more))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["state", "key_prefix", "owner"],
    });
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
    const unknownOrder = 99 as ListRecordsRequest_Order;
    for (const filter of [{ ...OLDEST_FIRST, state: Record_State.COMPLETED }, { order: unknownOrder }]) {
      expect(await errorOf(admin.listRecords(filter))).toMatchObject({
        reason: "INVALID_REQUEST",
        fields: ["order"],
      });
    }
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
    const ambiguous = { pageSize: 1, state: Record_State.AMBIGUOUS };
    const hold = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    await claimAll(hold, ["a", "b"]);
    await endLeases(world().database, hold.tenant);
    const byKey = await hold.admin.listRecords(ambiguous);
    others.push(() =>
      hold.admin.listRecords({ ...OLDEST_FIRST, pageSize: 1, pageToken: byKey.nextPageToken }),
    );
    for (const call of others) {
      expect(await errorOf(call())).toMatchObject({ reason: "INVALID_REQUEST", fields: ["page_token"] });
    }
    expect(await keysOf(theirs.admin)).toEqual(["a", "b"]);
  });

  /** Ends the lease of a key at an instant, given in milliseconds and microseconds. */
  async function endLease(
    { tenant }: AdministeredTenant,
    key: string,
    atMs: number,
    microseconds = 0,
  ): Promise<void> {
    await world().database.query(
      `update records
          set lease_expires_at = to_timestamp($3::bigint / 1000) + ($3::bigint % 1000) * interval '1 millisecond'
                                 + $4 * interval '1 microsecond'
        where tenant_id = $1 and key = $2`,
      [tenant.id, key, atMs, microseconds],
    );
  }

  /** Gives a tenant so many records like its one, in one go. */
  async function fill({ caller, tenant }: AdministeredTenant, count: number): Promise<void> {
    await caller.claim({ ...ORDER, key: "key-00000", lease: seconds(600) });
    await copyRecord(world().database, tenant, "key-00000", {
      count,
      keySql: "'key-' || to_char(n, 'FM00000')",
    });
    await world().database.query("delete from records where tenant_id = $1 and key = 'key-00000'", [
      tenant.id,
    ]);
  }

  function firstOf<Item>({ records: [first] }: { readonly records: readonly Item[] }): Item {
    if (first === undefined) throw new Error("there is no record");
    return first;
  }
});
