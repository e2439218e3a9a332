import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { itemErrorOf, runBatch } from "../support/calls/batches.ts";
import { connectClient } from "../support/calls/clients.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(() => database?.drop());

async function newReplica(): Promise<TestServer> {
  const replica = await startTestServer(database.url, {}, { heartbeatMs: 200 });
  onTestFinished(() => replica.stop());
  return replica;
}

/** How many replicas one knows of. */
async function known(replica: TestServer): Promise<number | undefined> {
  return (await readMetrics(replica)).get("onceward_replicas");
}

test("replicas discover each other, and a replica that stops removes itself", async () => {
  const first = await newReplica();
  const second = await newReplica();
  expect(await known(second)).toBe(2);
  await expect.poll(() => known(first), { timeout: 30_000, interval: 50 }).toBe(2);
  await second.stop();
  expect(await database.query("select 1 from replicas")).toHaveLength(1);
});

test("a replica that was killed counts for ten seconds, and is forgotten after a minute", async () => {
  await database.query(
    `insert into replicas (id, version, seen_at)
     values (gen_random_uuid(), 'alive', now()),
            (gen_random_uuid(), 'killed', now() - interval '11 seconds'),
            (gen_random_uuid(), 'long gone', now() - interval '61 seconds')`,
  );
  expect(await known(await newReplica())).toBe(2);
  const rows = await database.query<{ version: string }>(
    "select version from replicas where version ~ '^[a-z]' order by version",
  );
  expect(rows.map(({ version }) => version)).toEqual(["alive", "killed"]);
});

test("a tenant's rate is shared among live replicas", async () => {
  await database.query(
    "insert into replicas (id, version) select gen_random_uuid(), 'another' from generate_series(1, 3)",
  );
  const { apiKey } = await createTenant(database, { quota_operations_per_second: 8 });
  const client = connectClient(await newReplica(), apiKey);
  const claims = ["a", "b", "c", "d"].map((key) => ({
    case: "claim" as const,
    value: { namespace: "charges", key },
  }));
  const [first, second, ...rest] = await runBatch(client, claims);
  expect([first?.case, second?.case]).toEqual(["claim", "claim"]);
  expect(rest.map((each) => itemErrorOf(each).reason)).toEqual([
    ErrorReason.QUOTA_RATE,
    ErrorReason.QUOTA_RATE,
  ]);
});
