import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createWorld } from "../support/calls/admin.ts";
import { complete } from "../support/calls/verbs.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { startTestServer } from "../support/servers/server.ts";

/** A database, and a connection to it as the role of the replicas. */
async function connectAsService() {
  const database = await createTestDatabase();
  const { role, url } = await createServiceRole(database);
  const asService = new pg.Client({ connectionString: url });
  await asService.connect();
  onTestFinished(async () => {
    await asService.end();
    await database.query(`drop owned by ${role}`);
    await database.query(`drop role ${role}`);
    await database.drop();
  });
  return { database, asService, url, role };
}

test("the role of the replicas suffices for the service, and can't change what was audited", async () => {
  const { database, asService, url, role } = await connectAsService();
  const server = await startTestServer(url, { ONCEWARD_SWEEP_INTERVAL: "100ms" });
  onTestFinished(() => server.stop());

  const { admin, caller } = await createWorld(database, server).administeredTenant();
  await complete(caller);
  await admin.updateTenant({ tenant: { policy: { maxResultBytes: 1000 } }, applyToExisting: true });
  expect((await admin.listAuditEvents({})).events).toHaveLength(1);
  for (const change of [
    "update audit_events set actor = 'nobody'",
    "delete from audit_events",
    "truncate audit_events",
  ]) {
    await expect(asService.query(change)).rejects.toThrow("permission denied");
  }

  await database.query(
    `insert into audit_events (at, tenant, actor, action, target, outcome, request_id)
     select now() - interval '401 days', 't', 'a', 'UpdateTenant', 't', 'DONE', 'r'`,
  );
  const prune = "select prune_audit_events(interval '400 days', 10) as pruned";
  expect((await asService.query(prune)).rows).toEqual([{ pruned: 1 }]);
  await database.query(`revoke insert on audit_events from ${role}`);
  await expect(asService.query(prune)).rejects.toThrow("may prune");
});

test("the role of the replicas may use what a later migration makes", async () => {
  const { database, asService } = await connectAsService();
  await database.query("create table later_things (id bigint generated always as identity, name text)");
  await database.query("create sequence later_numbers");
  await asService.query("insert into later_things (name) values ('a')");
  await asService.query("update later_things set name = 'b'");
  expect((await asService.query("delete from later_things returning name")).rows).toEqual([{ name: "b" }]);
  expect((await asService.query("select nextval('later_numbers') as next")).rows).toEqual([{ next: "1" }]);
});

test("the role of the replicas may renew a restored installation, and set no sequence otherwise", async () => {
  const { asService } = await connectAsService();
  const renew = async (id: string) =>
    (await asService.query<{ renewed: boolean }>("select renew_installation($1, 0) as renewed", [id])).rows;
  const [before] = (await asService.query<{ id: string }>("select id from installation")).rows;
  expect(await renew(before?.id ?? "")).toEqual([{ renewed: true }]);
  expect(await renew(before?.id ?? "")).toEqual([{ renewed: false }]);
  await expect(asService.query("select setval('tenants_id_seq', 1)")).rejects.toThrow("permission denied");
});
