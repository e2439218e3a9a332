import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { endLeases } from "../support/calls/records.ts";
import { fingerprintOf, success } from "../support/calls/verbs.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest, useServer } from "../support/servers/use-server.ts";

const BATCHES = 20;
const BATCH = 200;
/** Take-overs of each key. */
const ROUNDS = 3;
const PAYLOAD = "x".repeat(100);

const { database, server } = useServer();

test("nine completes in ten are heap-only updates: they touch no index", async () => {
  const client = connectClient(server, (await createTenant(database)).apiKey);
  const ids = Array.from({ length: BATCHES * BATCH }, (_, index) => ({
    namespace: "charges",
    key: `order-${String(index * 7919).padStart(24, "0")}`,
  }));
  for (let first = 0; first < ids.length; first += BATCH) {
    const batch = ids.slice(first, first + BATCH);
    const claims = await client.batch({
      items: batch.map((id) => ({
        request: { case: "claim", value: { ...id, fingerprint: fingerprintOf(id.key), owner: "worker-1" } },
      })),
    });
    const completes = claims.items.map(({ response }, index) => {
      const claimed = response.case === "claim" ? response.value.outcome : undefined;
      const fencingToken = claimed?.case === "claimed" ? claimed.value.fencingToken : 0n;
      return { ...batch[index], fencingToken, result: success(PAYLOAD) };
    });
    await client.batch({ items: completes.map((value) => ({ request: { case: "complete", value } })) });
  }
  // A session reports its counts when it ends.
  await server.stop();
  await expect
    .poll(async () => (await countUpdates(database)).allOfThem, { timeout: 30_000 })
    .toBe(ids.length);
  expect((await countUpdates(database)).heapOnly / ids.length).toBeGreaterThanOrEqual(0.9);
});

test("nine in ten take-overs that keep the attempt which ended are heap-only updates", async () => {
  const { database, server } = await startOwn();
  const tenant = await createTenant(database);
  const client = connectClient(server, tenant.apiKey);
  const ids = Array.from({ length: BATCH }, (_, index) => ({ namespace: "charges", key: `order-${index}` }));
  const claimAll = () =>
    client.batch({
      items: ids.map((id) => ({ request: { case: "claim", value: { ...id, owner: "worker-1" } } })),
    });
  await claimAll();
  for (let round = 0; round < ROUNDS; round++) {
    await endLeases(database, tenant);
    // Frees the space of dead rows, as autovacuum does: otherwise the last updates find no room on their page.
    await database.query("vacuum records");
    await claimAll();
    await database.query("vacuum records");
  }
  const [row] = await database.query(
    "select min(attempt) as attempt, min(jsonb_array_length(past_attempts)) as kept from records",
  );
  expect(row).toEqual({ attempt: ROUNDS + 1, kept: ROUNDS });
  await server.stop();
  // Each round is two updates: the test's own, and the take-over.
  await expect
    .poll(async () => (await countUpdates(database)).allOfThem, { timeout: 30_000 })
    .toBe(2 * ROUNDS * BATCH);
  expect((await countUpdates(database)).heapOnly / (2 * ROUNDS * BATCH)).toBeGreaterThanOrEqual(0.9);
});

/** Starts a server on a database of one test, because the counts are those of a database. */
async function startOwn() {
  const database = await createDatabaseOfTest();
  const server = await startServerOfTest(database.url);
  return { database, server };
}

async function countUpdates(
  database: TestDatabase,
): Promise<{ readonly allOfThem: number; readonly heapOnly: number }> {
  const [counts] = await database.query<{ all_of_them: number; heap_only: number }>(
    `select n_tup_upd::int as all_of_them, n_tup_hot_upd::int as heap_only
       from pg_stat_user_tables where relname = 'records'`,
  );
  return { allOfThem: counts?.all_of_them ?? 0, heapOnly: counts?.heap_only ?? 0 };
}
