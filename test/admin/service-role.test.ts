import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createWorld } from "../helpers/admin.ts";
import { createTestDatabase } from "../helpers/database.ts";
import { startTestServer } from "../helpers/server.ts";
import { complete } from "../helpers/verbs.ts";

const DEPLOY_README = new URL("../../deploy/README.md", import.meta.url);

/** The statements of deploy/README.md, for a role of the test's own: roles are shared by all databases. */
async function readGrants(role: string): Promise<string> {
  const blocks = (await readFile(DEPLOY_README, "utf8")).matchAll(/```sql\n(.*?)```/gs);
  const sql = [...blocks].map(([, block]) => block).find((block) => block?.includes("create role"));
  if (sql === undefined) throw new Error("deploy/README.md grants nothing");
  return sql.replaceAll("onceward_service", role);
}

test("the role of deploy/README.md suffices for the service, and can't change what was audited", async () => {
  const database = await createTestDatabase();
  const role = `service_${randomBytes(4).toString("hex")}`;
  await database.query(await readGrants(role));
  const url = new URL(database.url);
  url.username = role;
  const asService = new pg.Client({ connectionString: url.href });
  await asService.connect();
  const server = await startTestServer(url.href, { ONCEWARD_SWEEP_INTERVAL: "100ms" });
  onTestFinished(async () => {
    await server.stop();
    await asService.end();
    await database.query(`drop owned by ${role}`);
    await database.query(`drop role ${role}`);
    await database.drop();
  });

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
