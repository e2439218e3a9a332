import { expect, onTestFinished, test } from "vitest";
import { FENCING_MARGIN_MS } from "../../server/src/records/engine/record-row.ts";
import { sweepBatch } from "../../server/src/records/sweep.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { ageRecords } from "../support/calls/records.ts";
import { complete, failure, grant, lookUp, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { countRows, sweep } from "../support/database/time.ts";
import { createTenant, type PolicyColumns, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const MARGIN_S = FENCING_MARGIN_MS / 1000;
const MAX_ROWS = 1000;

const { database, server } = useServer();

async function newCaller(
  policy: PolicyColumns,
): Promise<{ readonly tenant: TestTenant; readonly client: IdempotencyClient }> {
  const tenant = await createTenant(database, policy);
  // So that no other test sweeps this test's records.
  onTestFinished(async () => {
    await database.query("delete from records where tenant_id = $1", [tenant.id]);
  });
  return { tenant, client: connectClient(server, tenant.apiKey) };
}

async function rowOf(tenant: TestTenant) {
  const [row] = await database.query<{
    payload: string | null;
    content_type: string | null;
    metadata: string | null;
    due_in_s: number;
    margin_s: number;
  }>(
    `select convert_from(result_payload, 'utf8') as payload, result_content_type as content_type,
            result_metadata as metadata, date_part('epoch', sweep_at - now()) as due_in_s,
            date_part('epoch', sweep_at - expires_at) as margin_s
       from records where tenant_id = $1`,
    [tenant.id],
  );
  return row;
}

test("a record completed within its lease is deleted by the first sweep that finds it due", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 600 });
  const { fencingToken } = await grant(client, { lease: seconds(30) });
  await ageRecords(database, tenant, 20);
  await client.complete({ ...ORDER, fencingToken, result: success("paid") });
  const pool = openStorePool(database);
  // Two minutes after the end of what was claimed, but not of what was completed.
  await ageRecords(database, tenant, 600 + MARGIN_S - 10);
  expect(await sweepBatch(pool, MAX_ROWS)).toMatchObject({ due: 0, deleted: 0, kept: 0 });
  await ageRecords(database, tenant, 30);
  expect(await sweepBatch(pool, MAX_ROWS)).toMatchObject({ due: 1, deleted: 1, kept: 0 });
});

test("a row stays for two minutes after its retention ended", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 600 });
  await complete(client);
  await database.query("update records set sweep_at = now() where tenant_id = $1", [tenant.id]);
  await ageRecords(database, tenant, 600 + MARGIN_S - 10);
  await sweep(database);
  // It is due once it may be deleted, not before.
  expect(await rowOf(tenant)).toMatchObject({ margin_s: MARGIN_S });
  await ageRecords(database, tenant, 10);
  await sweep(database);
  expect(await countRows(database, tenant)).toBe(0);
});

test.each([
  ["in progress", (client: IdempotencyClient) => grant(client)],
  [
    "released",
    async (client: IdempotencyClient) => {
      const { fencingToken } = await grant(client);
      await client.release({ ...ORDER, fencingToken });
    },
  ],
])("a record that was left %s goes too", async (_, leave) => {
  const { tenant, client } = await newCaller({ key_retention_s: 600 });
  await leave(client);
  await ageRecords(database, tenant, 600 + MARGIN_S + 60);
  await sweep(database);
  expect(await countRows(database, tenant)).toBe(0);
});

test("an expired result is dropped, and its record stays completed", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 3600, result_retention_s: 60 });
  await complete(client, { ...success("paid"), contentType: "text/plain", metadata: { a: "b" } });
  await ageRecords(database, tenant, 60 + MARGIN_S + 60);
  await sweep(database);
  expect(await rowOf(tenant)).toMatchObject({ payload: null, content_type: null, metadata: null });
  const { outcome } = await client.claim(ORDER);
  expect(outcome).toMatchObject({ case: "completed", value: { resultExpired: true } });
});

test("a repeated complete is distinguished from another after the result's sweep", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 3600, result_retention_s: 60 });
  const { fencingToken } = await complete(client, success("paid"));
  await ageRecords(database, tenant, 60 + MARGIN_S + 60);
  await sweep(database);
  const again = await client.complete({ ...ORDER, fencingToken, result: success("paid") });
  expect(again.alreadyCompleted).toBe(true);
  await expect(client.complete({ ...ORDER, fencingToken, result: success("else") })).rejects.toThrow(
    /with another result/,
  );
});

test("a record examined too early is postponed to its next part's end, unchanged", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 3600, result_retention_s: 600 });
  await complete(client, success("paid"));
  await database.query("update records set sweep_at = now() where tenant_id = $1", [tenant.id]);
  await sweep(database);
  expect(await rowOf(tenant)).toMatchObject({ payload: "paid" });
  expect((await rowOf(tenant))?.due_in_s).toBeCloseTo(600, -1.5);
});

test.each([
  ["result", { result_retention_s: 60 }, success("paid")],
  ["failure", { failure_retention_s: 60 }, failure("declined")],
])("a record in progress is examined again when its %s could end", async (_, retention, result) => {
  const { tenant, client } = await newCaller({
    key_retention_s: 86_400,
    max_lease_ms: 3_600_000,
    ...retention,
  });
  const { fencingToken } = await grant(client);
  // Its holder works longer than its result would be kept.
  await client.extendLease({ ...ORDER, fencingToken, lease: seconds(1800) });
  await database.query("update records set sweep_at = now() where tenant_id = $1", [tenant.id]);
  await sweep(database);
  await client.complete({ ...ORDER, fencingToken, result });
  await ageRecords(database, tenant, 1800 + 60 + MARGIN_S + 60);
  await sweep(database);
  expect(await rowOf(tenant)).toMatchObject({ payload: null });
});

test("the sweep of an ended record does not delete the record of a later claim", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 600 });
  await complete(client);
  await ageRecords(database, tenant, 600 + MARGIN_S + 60);
  await grant(client);
  await sweep(database);
  expect(await lookUp(client)).toMatchObject({ attempt: 1 });
});

test("a batch of the sweep examines at most its limit of rows, the most overdue first", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 60 });
  for (const key of ["a", "b", "c", "d", "e"]) await client.claim({ ...ORDER, key });
  await ageRecords(database, tenant, 600);
  await ageRecords(database, tenant, 600, "d");
  const pool = openStorePool(database);
  expect(await sweepBatch(pool, 1)).toMatchObject({ due: 1, deleted: 1, kept: 0 });
  expect((await client.lookup({ ...ORDER, key: "d" })).record).toBeUndefined();
  expect(await countRows(database, tenant)).toBe(4);
  expect(await sweepBatch(pool, 3)).toMatchObject({ due: 3, deleted: 3, kept: 0 });
  expect(await sweepBatch(pool, 3)).toMatchObject({ due: 1, deleted: 1, kept: 0 });
});

test("a batch of the sweep returns how long its most overdue row has waited", async () => {
  const { tenant, client } = await newCaller({ key_retention_s: 60 });
  for (const key of ["a", "b"]) await client.claim({ ...ORDER, key });
  const [row] = await database.query<{ due_in_s: number }>(
    "select date_part('epoch', min(sweep_at) - now()) as due_in_s from records where tenant_id = $1",
    [tenant.id],
  );
  await ageRecords(database, tenant, Math.ceil(row?.due_in_s ?? 0));
  await ageRecords(database, tenant, 600, "b");
  const pool = openStorePool(database);
  const { lagS } = await sweepBatch(pool, MAX_ROWS);
  expect(lagS).toBeGreaterThanOrEqual(600);
  expect(lagS).toBeLessThan(700);
  expect((await sweepBatch(pool, MAX_ROWS)).lagS).toBe(0);
});
