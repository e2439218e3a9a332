import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { copyRecord } from "../support/calls/records.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { keysOfOneShard } from "../support/database/shards.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

const LABELS = 100;
const TENANTS = 110;

const database = useDatabase();

async function newReplica(): Promise<TestServer> {
  const replica = await startTestServer(database.url);
  onTestFinished(() => replica.stop());
  return replica;
}

async function claimsOf(replica: TestServer): Promise<ReadonlyMap<string, number>> {
  const claims = new Map<string, number>();
  for (const [name, count] of await readMetrics(replica)) {
    const [, tenant] = /^onceward_claims_total\{tenant="(.+)",outcome="claimed"\}$/.exec(name) ?? [];
    if (tenant !== undefined) claims.set(tenant, count);
  }
  return claims;
}

function sum(claims: ReadonlyMap<string, number>): number {
  return [...claims.values()].reduce((total, count) => total + count, 0);
}

test("replicas with more tenants than labels, in any order, use the same labels", async () => {
  const [first, second] = [await newReplica(), await newReplica()];
  // Both replicas run before the tenants exist.
  const tenants: TestTenant[] = [];
  for (let i = 0; i < TENANTS; i++) tenants.push(await createTenant(database));
  const claimAll = (replica: TestServer, own: readonly TestTenant[]) =>
    Promise.all(
      own.map(({ apiKey }) => grant(connectClient(replica, apiKey), { key: `at-${replica.grpcPort}` })),
    );
  await claimAll(first, tenants);
  await claimAll(second, tenants.toReversed());
  const expected = new Map(tenants.slice(0, LABELS).map(({ name }) => [name, 1]));
  expected.set("other", TENANTS - LABELS);
  for (const replica of [first, second]) {
    await expect.poll(async () => sum(await claimsOf(replica)), { timeout: 60_000 }).toBe(TENANTS);
    expect(await claimsOf(replica)).toEqual(expected);
  }
});

test("operations of a tenant that wait for its share are counted, each once", async () => {
  // Else the labels are used up.
  await database.query("delete from tenants");
  const [greedy, modest] = [await createTenant(database), await createTenant(database)];
  const replica = await startTestServer(database.url, { ONCEWARD_TENANT_SHARE: "1" });
  onTestFinished(() => replica.stop());
  const held = async () => {
    for (const [name, count] of await readMetrics(replica))
      if (name === `onceward_tenant_share_held_total{tenant="${greedy.name}"}`) return count;
    return 0;
  };
  let ended = false;
  const other = connectClient(replica, modest.apiKey);
  await other.lookup(ORDER);
  // A tenant has a share only beside tenants that were active within a second.
  const activity = (async () => {
    while (!ended) await other.claim(ORDER);
  })();
  const keys = await keysOfOneShard(database, 20);
  const { items } = await connectClient(replica, greedy.apiKey).batch({
    items: keys.map((key) => ({
      request: { case: "claim" as const, value: { namespace: "charges", key } },
    })),
  });
  ended = true;
  await activity;
  expect(items).toHaveLength(20);
  await expect.poll(held, { timeout: 60_000 }).toBe(19);
});

test("ambiguous records are counted by the tenant's label, without those that are not", async () => {
  await database.query("delete from tenants");
  const tenant = await createTenant(database, { on_lease_expiry: "HOLD" });
  const client = connectClient(await newReplica(), tenant.apiKey);
  for (const key of ["a", "b", "c", "done"]) await grant(client, { key });
  await database.query(
    "update records set lease_expires_at = now() - interval '1 minute' where key in ('a', 'b')",
  );
  // More than one statement counts.
  await copyRecord(database, tenant, "a", { count: 5000, keySql: "'copy-' || n" });
  // A new replica counts at once.
  const replica = await newReplica();
  const ambiguous = async () =>
    (await readMetrics(replica)).get(`onceward_ambiguous_records{tenant="${tenant.name}"}`);
  await expect.poll(ambiguous, { timeout: 60_000 }).toBe(5002);
});
