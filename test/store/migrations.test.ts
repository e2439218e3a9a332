import { expect, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

test("a migration that fails leaves the database as it was", async () => {
  const database = await createDatabaseOfTest("template0");
  await database.query("create table records (in_the_way int)");
  await expect(migrate(database.url, () => {})).rejects.toThrow(/"records" already exists/);
  const tables = await database.query("select relname from pg_class where relname in ('tenants', 'records')");
  expect(tables).toEqual([{ relname: "records" }]);
});

test("a server keeps working while a newer one adds a column, a table and an index", async () => {
  const database = await createDatabaseOfTest();
  const server = await startServerOfTest(database.url);
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await grant(client, { key: "before" });
  // One by one: Citus takes no two statements on a distributed table in one query.
  await database.query("alter table records add column newer int not null default 7");
  await database.query("alter table tenants add column newer text");
  await database.query("create table newer (id int primary key)");
  await database.query("create index newer_index on records (newer)");
  const { fencingToken } = await complete(client, success("paid"));
  const again = await client.complete({ ...ORDER, fencingToken, result: success("paid") });
  expect(again.alreadyCompleted).toBe(true);
  expect((await client.claim({ ...ORDER, key: "before" })).outcome.case).toBe("inProgress");
});
