import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { success } from "../support/calls/verbs.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

test("the role of the replicas suffices for every call on records", async () => {
  const database = await createTestDatabase();
  const { role, url } = await createServiceRole(database);
  const server = await startTestServer(url);
  onTestFinished(async () => {
    await server.stop();
    await database.query(`drop owned by ${role}`);
    await database.query(`drop role ${role}`);
    await database.drop();
  });
  const tenant = await createTenant(database);
  const client = connectClient(server, tenant.apiKey);
  // More keys than shards, so that both nodes are asked.
  for (let key = 0; key < 16; key++) {
    const id = { namespace: "charges", key: String(key) };
    const first = granted(await client.claim(id));
    await client.extendLease({ ...id, fencingToken: first.fencingToken, checkpoint: { name: "half" } });
    await client.release({ ...id, fencingToken: first.fencingToken });
    const second = granted(await client.claim(id));
    expect(second).toMatchObject({ attempt: 2, checkpoint: { name: "half" } });
    await client.complete({ ...id, fencingToken: second.fencingToken, result: success(id.key) });
    expect((await client.claim(id)).outcome.case).toBe("completed");
  }
});
