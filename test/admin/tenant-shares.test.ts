import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { runBatch } from "../support/calls/batches.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { keysOfOneShard } from "../support/database/shards.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createTenant, type PolicyColumns } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const SHARE = 4;
/** A tenant counts for a second after its call, and a busy machine may take longer between two. */
const PATIENCE = { timeout: 30_000, interval: 0 };

const { database, server } = useServer({ ONCEWARD_TENANT_SHARE: String(SHARE) });

async function newTenant(columns: PolicyColumns = {}): Promise<IdempotencyClient> {
  return connectClient(server, (await createTenant(database, columns)).apiKey);
}

/** Claims so many keys in one call; answers how many statements it took. */
async function statementsOf(client: IdempotencyClient, claims: number): Promise<number> {
  const before = await claimStatements();
  const namespace = `charges-${randomUUID()}`;
  const requests = (await keysOfOneShard(database, claims)).map((key) => ({
    case: "claim" as const,
    value: { namespace, key },
  }));
  const responses = await runBatch(client, requests);
  expect(responses.map((response) => response.case)).toEqual(Array(claims).fill("claim"));
  return (await claimStatements()) - before;
}

async function claimStatements(): Promise<number> {
  const metrics = await readMetrics(server);
  return metrics.get('onceward_batch_size_count{statement="claim_records"}') ?? 0;
}

/** Returns the same while another tenant calls, whose call needs no claim statement. */
async function statementsBeside(other: IdempotencyClient, client: IdempotencyClient, claims: number) {
  await other.lookup({ namespace: "charges", key: randomUUID() });
  return await statementsOf(client, claims);
}

test("a tenant's claims share a statement alone, and have only a share beside another tenant", async () => {
  const [greedy, modest] = [await newTenant(), await newTenant()];
  expect(await statementsOf(greedy, 3 * SHARE)).toBe(1);
  await expect.poll(() => statementsBeside(modest, greedy, 3 * SHARE), PATIENCE).toBe(3);
});

test("a tenant's share is proportional to its weight", async () => {
  const [heavy, modest] = [await newTenant({ weight: 3 }), await newTenant()];
  await expect.poll(() => statementsBeside(modest, heavy, 3 * SHARE), PATIENCE).toBe(2);
  await expect.poll(() => statementsBeside(heavy, modest, SHARE), PATIENCE).toBe(2);
});
