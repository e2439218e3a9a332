import { expect, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { fingerprintOf, success } from "../helpers/calls/verbs.ts";
import { createTenant } from "../helpers/servers/tenants.ts";
import { useServer } from "../helpers/servers/use-server.ts";

const BATCHES = 20;
const BATCH = 200;
const PAYLOAD = "x".repeat(100);

const { database, server } = useServer();

test("nine completes in ten are heap-only updates: they touch no index", async () => {
  const { apiKey } = await createTenant(database);
  const client = connectClient(server, apiKey);
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
  await expect.poll(async () => (await countUpdates()).allOfThem, { timeout: 30_000 }).toBe(ids.length);
  expect((await countUpdates()).heapOnly / ids.length).toBeGreaterThanOrEqual(0.9);
});

async function countUpdates(): Promise<{ readonly allOfThem: number; readonly heapOnly: number }> {
  const [counts] = await database.query<{ all_of_them: number; heap_only: number }>(
    `select n_tup_upd::int as all_of_them, n_tup_hot_upd::int as heap_only
       from pg_stat_user_tables where relname = 'records'`,
  );
  return { allOfThem: counts?.all_of_them ?? 0, heapOnly: counts?.heap_only ?? 0 };
}
