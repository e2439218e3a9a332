import { expect, onTestFinished, test } from "vitest";
import { openPool } from "../../server/src/database/pool.ts";
import { sweepBatch } from "../../server/src/records/sweep.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { ageRecords, granted, grantsAmong } from "../support/calls/records.ts";
import { lockRows, openConnection, openStorePool, untilBlocked } from "../support/database/connections.ts";
import { isCitus } from "../support/database/database.ts";
import { countRows } from "../support/database/time.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const LONG_AGO_S = 3600;
const MAX_ROWS = 1000;
/** SQLSTATE of a lock timeout; not deadlock_detected, which may end either transaction. */
const LOCK_NOT_AVAILABLE = "55P03";

const { database, server } = useServer();

async function newCaller(): Promise<{ readonly tenant: TestTenant; readonly client: IdempotencyClient }> {
  const tenant = await createTenant(database, { key_retention_s: 60 });
  return { tenant, client: connectClient(server, tenant.apiKey) };
}

async function claimAll(client: IdempotencyClient, keys: readonly string[]): Promise<void> {
  const items = keys.map((key) => ({
    request: { case: "claim" as const, value: { namespace: "charges", key } },
  }));
  await client.batch({ items });
}

function keysFrom(first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `key-${String(first + index).padStart(5, "0")}`);
}

test("the sweep holds no lock for a transaction while it waits for that transaction", async () => {
  const { tenant, client } = await newCaller();
  // The sweep postpones the first key and deletes the second one.
  await claimAll(client, ["a-live", "b-ended"]);
  await ageRecords(database, tenant, LONG_AGO_S);
  await database.query(
    "update records set expires_at = now() + interval '1 hour' where tenant_id = $1 and key = 'a-live'",
    [tenant.id],
  );
  const other = await openConnection(database);
  await lockRows(other, tenant, ["a-live"]);
  const sweeping = sweepBatch(openStorePool(database), MAX_ROWS);
  await untilBlocked(database);
  // In the order of keys, as a batch locks rows. This could complete a deadlock.
  await other.query("set lock_timeout = '500ms'");
  await other.query("select from records where tenant_id = $1 and key = 'b-ended' for update", [tenant.id]);
  await other.query("commit");
  expect(await sweeping).toMatchObject({ deleted: 1, kept: 1 });
});

test("in a deadlock the sweep fails, and the other transaction succeeds", async () => {
  const { tenant, client } = await newCaller();
  await claimAll(client, ["a-ended", "b-ended"]);
  await ageRecords(database, tenant, LONG_AGO_S);
  await ageRecords(database, tenant, 1, "b-ended");
  const other = await openConnection(database);
  // The sweep takes this key second. It deletes b-ended first, which is more overdue, and waits.
  await lockRows(other, tenant, ["a-ended"]);
  // This pool has no lock timeout. Without the sweep's own, Postgres would end either transaction.
  const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: true });
  onTestFinished(() => pool.close());
  const sweeping = sweepBatch(pool, MAX_ROWS);
  // A worker of Citus does not know the sweep's lock timeout: its own, or the coordinator a moment later, ends the statement.
  const failed = expect(sweeping).rejects.toMatchObject(
    isCitus()
      ? { reason: expect.stringMatching(/^(DATABASE_UNAVAILABLE|RECORD_CONTENDED)$/) }
      : { reason: "RECORD_CONTENDED", cause: { sqlState: LOCK_NOT_AVAILABLE } },
  );
  await untilBlocked(database);
  await other.query("select from records where tenant_id = $1 and key = 'b-ended' for update", [tenant.id]);
  await failed;
  await other.query("commit");
  expect(await countRows(database, tenant)).toBe(2);
  expect(await sweepBatch(pool, MAX_ROWS)).toMatchObject({ deleted: 2 });
});

test("two concurrent sweeps delete every ended row once, and neither fails", async () => {
  const { tenant, client } = await newCaller();
  await claimAll(client, keysFrom(0, 1000));
  await ageRecords(database, tenant, LONG_AGO_S);
  const sweepers = [openStorePool(database), openStorePool(database)];
  let deleted = 0;
  while ((await countRows(database, tenant)) > 0) {
    const swept = await Promise.all(sweepers.map((pool) => sweepBatch(pool, 100)));
    for (const each of swept) deleted += each.deleted;
  }
  expect(deleted).toBe(1000);
});

test("a sweep that is killed midway leaves all rows to the next one", async () => {
  const { tenant, client } = await newCaller();
  const keys = keysFrom(0, 500);
  await claimAll(client, keys);
  await ageRecords(database, tenant, LONG_AGO_S);
  const other = await openConnection(database);
  await lockRows(other, tenant, keys.slice(-1));
  const killed = sweepBatch(openStorePool(database), MAX_ROWS);
  await untilBlocked(database);
  // It has deleted 499 rows, and waits for the last one.
  const ended = database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'onceward' and state = 'active'
        and query like '%delete from records%'`,
  );
  await expect(killed).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  await ended;
  await other.query("rollback");
  expect(await countRows(database, tenant)).toBe(500);
  expect(await sweepBatch(openStorePool(database), MAX_ROWS)).toMatchObject({
    due: 500,
    deleted: 500,
    kept: 0,
  });
});

test("a key that is claimed while the sweep deletes it is granted once, with a higher token", async () => {
  const { tenant, client } = await newCaller();
  const crowd = await connectCrowd([server], tenant.apiKey, 8);
  const pool = openStorePool(database);
  for (let round = 0; round < 20; round++) {
    const id = { namespace: "charges", key: `swept-${round}` };
    const { fencingToken } = granted(await client.claim(id));
    await ageRecords(database, tenant, LONG_AGO_S, id.key);
    const [, ...replies] = await Promise.all([
      sweepBatch(pool, MAX_ROWS),
      ...crowd.map((each) => each.claim(id)),
    ]);
    const grants = grantsAmong(replies);
    expect(grants).toMatchObject([{ attempt: 1 }]);
    expect(grants[0]?.fencingToken).toBeGreaterThan(fencingToken);
    expect((await client.lookup(id)).record?.fencingToken).toBe(grants[0]?.fencingToken);
  }
});

test("a key that was claimed while the sweep waited for its row is not deleted", async () => {
  const { tenant, client } = await newCaller();
  const id = { namespace: "charges", key: "revived" };
  granted(await client.claim(id));
  await ageRecords(database, tenant, LONG_AGO_S);
  const other = await openConnection(database);
  await lockRows(other, tenant, [id.key]);
  const sweeping = sweepBatch(openStorePool(database), MAX_ROWS);
  await untilBlocked(database);
  await other.query(
    `update records set fencing_token = fencing_token + 1, expires_at = now() + interval '1 hour'
      where tenant_id = $1 and key = $2`,
    [tenant.id, id.key],
  );
  await other.query("commit");
  expect(await sweeping).toMatchObject({ deleted: 0 });
  expect((await client.lookup(id)).record).toBeDefined();
});
