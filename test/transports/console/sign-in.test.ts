import { afterAll, beforeAll, expect, test } from "vitest";
import { callRpc, signIn, whoIs } from "../../helpers/console/browser.ts";
import { createTestDatabase, type TestDatabase } from "../../helpers/database/database.ts";
import { startTestServer, type TestServer } from "../../helpers/servers/server.ts";
import { createApiKey, createTenant } from "../../helpers/servers/tenants.ts";

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

test("an API key signs in, and the session is the key's principal", async () => {
  const tenant = await createTenant(database);
  const key = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const cookie = await signIn(server, key);
  expect(cookie).toMatch(/^onceward-session=[\w-]{43}$/);
  expect(await whoIs(server, cookie)).toBe(key.slice(3, 19));
  const answer = await callRpc(server, "TenantAdminService/GetTenant", { cookie });
  expect(answer.json).toMatchObject({ tenant: { name: tenant.name } });
});
