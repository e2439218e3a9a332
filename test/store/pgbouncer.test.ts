import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { complete, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

/** Returns everything that a server sends to Postgres for one key from claim to result, as text. */
async function sentToPostgres(env: Readonly<Record<string, string>>): Promise<string> {
  const sent: Buffer[] = [];
  const { url } = await proxyDatabase(database.url, (bytes) => sent.push(bytes));
  const server = await startServerOfTest(url, env);
  const client = connectClient(server, (await createTenant(database)).apiKey);
  const { fencingToken } = await grant(client);
  await client.extendLease({ ...ORDER, fencingToken });
  await client.release({ ...ORDER, fencingToken });
  await complete(client, success("paid"));
  expect((await lookUp(client)).attempt).toBe(2);
  expect((await client.claim(ORDER)).outcome.case).toBe("completed");
  return Buffer.concat(sent).toString("latin1");
}

/** Matches a Parse message with a statement's name: P, four bytes of length, the name, a zero byte. */
const NAMED_PARSE = /P[\s\S]{4}(?:claim|complete|release|read)_records(?:_passed_on)?\0/;
/** Matches settings that a pooler in transaction mode refuses, or keeps from one client to the next. */
const SESSION_SETTING = /statement_timeout|lock_timeout|plan_cache_mode/;

test("through PgBouncer no session state is sent: no named statement, no setting", async () => {
  const sent = await sentToPostgres({ ONCEWARD_PGBOUNCER: "true" });
  expect(sent).toContain("insert into records");
  expect(sent).not.toMatch(NAMED_PARSE);
  expect(sent).not.toMatch(SESSION_SETTING);
});

test("without PgBouncer statements are prepared once a connection, with the pool's settings", async () => {
  const sent = await sentToPostgres({});
  expect(sent).toMatch(NAMED_PARSE);
  expect(sent).toMatch(SESSION_SETTING);
});
