import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectClient, TRANSPORTS, type TransportName } from "../helpers/clients.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { createTenant } from "../helpers/tenants.ts";

let database: TestDatabase;
let server: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startTestServer(database.url);
});

afterAll(async () => {
  await server?.stop();
  await database?.drop();
});

describe.each(Object.keys(TRANSPORTS) as TransportName[])("Claim over %s", (transport) => {
  test("the first claim of a key is granted, and the second one is told that it is in progress", async () => {
    const { apiKey } = await createTenant(database);
    const client = connectClient(server, apiKey, transport);
    const first = await client.claim({ namespace: "charges", key: "order-1", owner: "worker-1" });
    const second = await client.claim({ namespace: "charges", key: "order-1", owner: "worker-2" });
    expect(first.outcome).toMatchObject({ case: "claimed", value: { attempt: 1 } });
    expect(second.outcome).toMatchObject({ case: "inProgress", value: { owner: "worker-1", attempt: 1 } });
    expect(second.expiresAt).toEqual(first.expiresAt);
  });
});
