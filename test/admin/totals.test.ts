import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createStorageTotals } from "../../server/src/access/storage-totals.ts";
import {
  countRecordsPage,
  FROM_THE_START,
  takeCount,
} from "../../server/src/database/tenants/tenant-totals.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ageRecords } from "../support/calls/records.ts";
import { complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { countRows } from "../support/database/time.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type PolicyColumns, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const PATIENCE = { timeout: 30_000, interval: 50 };

const { database, server } = useServer();

interface CountedTenant {
  readonly tenant: TestTenant;
  readonly client: IdempotencyClient;
}

async function countedTenant(columns: PolicyColumns = {}): Promise<CountedTenant> {
  const tenant = await createTenant(database, { quota_live_records: 1000, ...columns });
  return { tenant, client: connectClient(server, tenant.apiKey) };
}

/** Another replica, which has its own idea of what the tenant stores. */
async function newReplica(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  const replica = await startTestServer(database.url, env);
  onTestFinished(() => replica.stop());
  return replica;
}

async function totalsOf({ id }: TestTenant): Promise<{ records: number; bytes: number } | undefined> {
  const [totals] = await database.query<{ records: number; bytes: number }>(
    "select records::int, stored_bytes::int as bytes from tenant_totals where tenant_id = $1",
    [id],
  );
  return totals;
}

/** Counts a tenant, and not again for a while: what changes from now on is what replicas add. */
async function settleCount({ tenant: { id }, client }: CountedTenant): Promise<void> {
  await client.lookup(ORDER);
  const settle = () =>
    database.query(
      `update tenant_totals set count_due_at = now() + interval '1 hour'
        where tenant_id = $1 and count_due_at > now() returning 1`,
      [id],
    );
  await expect.poll(async () => (await settle()).length, PATIENCE).toBe(1);
}

async function settledTenant(columns: PolicyColumns = {}): Promise<CountedTenant> {
  const counted = await countedTenant(columns);
  await settleCount(counted);
  return counted;
}

async function claimMany(client: IdempotencyClient, count: number): Promise<void> {
  const items = Array.from({ length: count }, () => ({
    request: { case: "claim" as const, value: { namespace: "charges", key: randomUUID() } },
  }));
  await client.batch({ items });
}

test("the totals follow claims, completions and the sweep", async () => {
  const { tenant, client } = await settledTenant({ key_retention_s: 3600, result_retention_s: 60 });
  await complete(client, { ...success("paid"), metadata: { currency: "€" } });
  await claimMany(client, 9);
  await expect.poll(() => totalsOf(tenant), PATIENCE).toEqual({ records: 10, bytes: 4 + 18 });

  const sweeping = await newReplica({ ONCEWARD_SWEEP_INTERVAL: "100ms" });
  await ageRecords(database, tenant, 600);
  await expect.poll(() => totalsOf(tenant), PATIENCE).toEqual({ records: 10, bytes: 0 });
  await ageRecords(database, tenant, 3600);
  await expect.poll(() => totalsOf(tenant), PATIENCE).toEqual({ records: 0, bytes: 0 });
  await sweeping.stop();
});

test("counts that a replica had not stored are stored when it stops", async () => {
  const { tenant } = await countedTenant();
  const replica = await newReplica();
  const client = connectClient(replica, tenant.apiKey);
  await settleCount({ tenant, client });
  await claimMany(client, 5);
  await replica.stop();
  expect(await totalsOf(tenant)).toMatchObject({ records: 5 });
});

test("the totals of more tenants than one statement takes are all stored", async () => {
  const unserved = await createDatabaseOfTest();
  const tenants = await unserved.query<{ id: number }>(
    "insert into tenants (name, quota_live_records) select 'tenant-' || n, 9 from generate_series(1, 1001) n returning id",
  );
  const onFailed = (error: unknown) => {
    throw error;
  };
  const totals = createStorageTotals({ pool: openStorePool(unserved), onFailed });
  for (const { id: tenantId } of tenants) totals.add({ tenantId, records: 1, storedBytes: 2 });
  await totals.stop();
  const sums = await unserved.query(
    "select count(*)::int as tenants, sum(records)::int as records, sum(stored_bytes)::int as bytes from tenant_totals",
  );
  expect(sums).toEqual([{ tenants: 1001, records: 1001, bytes: 2002 }]);
});

test("totals that a killed replica left wrong are corrected by the next count", async () => {
  const { tenant, client } = await settledTenant();
  const { fencingToken } = await grant(client);
  await client.extendLease({
    ...ORDER,
    fencingToken,
    checkpoint: { name: "half", state: Buffer.from("way") },
  });
  await claimMany(client, 4);
  // A checkpoint replaces another that no replica knows of, and so is left to the count.
  await expect.poll(() => totalsOf(tenant), PATIENCE).toEqual({ records: 5, bytes: 0 });
  await database.query(
    `update tenant_totals set records = 900, stored_bytes = 1, count_due_at = now() where tenant_id = $1`,
    [tenant.id],
  );
  await expect.poll(() => totalsOf(tenant), PATIENCE).toEqual({ records: 5, bytes: 3 });
});

test("a quota holds over all replicas", async () => {
  const { tenant, client } = await settledTenant({ quota_live_records: 5 });
  await claimMany(client, 5);
  await expect.poll(() => totalsOf(tenant), PATIENCE).toMatchObject({ records: 5 });
  expect(await errorOf(client.claim(ORDER))).toMatchObject({ reason: "QUOTA_RECORDS" });
  const other = connectClient(await newReplica(), tenant.apiKey);
  expect(await errorOf(other.claim(ORDER))).toMatchObject({ reason: "QUOTA_RECORDS" });
});

test("batches at once add as many records as the quota has room for", async () => {
  const { tenant, client } = await settledTenant({ quota_live_records: 10 });
  await Promise.all([claimMany(client, 1000), claimMany(client, 1000), client.claim(ORDER).catch(() => {})]);
  expect(await countRows(database, tenant)).toBe(10);
});

test("claims of existing keys are answered while others have reserved the quota", async () => {
  const { client } = await settledTenant({ quota_live_records: 10 });
  const keys = Array.from({ length: 9 }, (_, n) => `order-${n}`);
  const claimAll = async () => {
    const items = keys.map((key) => ({
      request: { case: "claim" as const, value: { namespace: "charges", key } },
    }));
    return (await client.batch({ items })).items.map(({ response }) => response.case);
  };
  expect(new Set(await claimAll())).toEqual(new Set(["claim"]));
  // Room for one is left, and none of the nine needs it.
  expect(new Set(await claimAll())).toEqual(new Set(["claim"]));
  // What was reserved for them has been returned.
  expect((await client.claim({ namespace: "charges", key: "order-9" })).outcome.case).toBe("claimed");
  expect(await errorOf(client.claim(ORDER))).toMatchObject({ reason: "QUOTA_RECORDS" });
});

test("freed quota can be used again", async () => {
  const { tenant, client } = await settledTenant({ quota_live_records: 1 });
  await grant(client);
  expect(await errorOf(client.claim({ ...ORDER, key: "order-2" }))).toMatchObject({
    reason: "QUOTA_RECORDS",
  });
  await expect.poll(() => totalsOf(tenant), PATIENCE).toMatchObject({ records: 1 });
  await database.query("delete from records where tenant_id = $1", [tenant.id]);
  await database.query("update tenant_totals set count_due_at = now() where tenant_id = $1", [tenant.id]);
  const outcome = async () => (await client.claim({ ...ORDER, key: "order-2" })).outcome.case;
  await expect.poll(() => outcome().catch(() => "refused"), PATIENCE).toBe("claimed");
});

test("only tenants with a quota of records or bytes are counted", async () => {
  const { tenant, client } = await countedTenant({ quota_live_records: 5 });
  const unlimited = await createTenant(database);
  await claimMany(connectClient(server, unlimited.apiKey), 3);
  await claimMany(client, 3);
  await settleCount({ tenant, client });
  expect(await totalsOf(unlimited)).toBeUndefined();
});

test("a tenant is counted by one replica at a time, and by another one if that replica dies", async () => {
  const alone = await createDatabaseOfTest();
  const pool = openStorePool(alone);
  const one = await createTenant(alone, { quota_stored_bytes: 1000 });
  const other = await createTenant(alone, { quota_live_records: 1000 });
  expect(new Set([await takeCount(pool), await takeCount(pool)])).toEqual(new Set([one.id, other.id]));
  expect(await takeCount(pool)).toBeUndefined();
  await alone.query(
    "update tenant_totals set counting_until = now() - interval '1 second' where tenant_id = $1",
    [one.id],
  );
  expect(await takeCount(pool)).toBe(one.id);
});

test("totals of a tenant whose quota was removed are deleted once their count is due", async () => {
  const alone = await createDatabaseOfTest();
  const pool = openStorePool(alone);
  const without = await createTenant(alone, { quota_live_records: 1000 });
  await createTenant(alone, { quota_live_records: 1000, deleted_at: "now" });
  await alone.query("update tenants set quota_live_records = null where id = $1", [without.id]);
  const counted = await createTenant(alone);
  await alone.query("update tenants set quota_stored_bytes = 1 where id = $1", [counted.id]);
  await alone.query("update tenant_totals set count_due_at = now() where tenant_id = $1", [counted.id]);
  expect(await takeCount(pool)).toBe(counted.id);
  expect(await alone.query("select tenant_id from tenant_totals")).toEqual([{ tenant_id: counted.id }]);
});

test("a count in pages counts every record once", async () => {
  const { tenant, client } = await countedTenant();
  const pool = openStorePool(database);
  await claimMany(client, 20);
  await client.claim({ namespace: "a", key: "z" });
  await client.claim({ namespace: "b", key: "a" });
  let records = 0;
  let after = FROM_THE_START;
  for (let page = 1; page <= 10; page++) {
    const counted = await countRecordsPage(pool, tenant.id, after, 3);
    records += counted.records;
    if (counted.upTo === undefined) break;
    after = counted.upTo;
  }
  expect(records).toBe(22);
});
