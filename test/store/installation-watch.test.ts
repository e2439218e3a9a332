import { beforeEach, expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

/** A replica looks every 3 s. The rest is for a busy machine. */
const PATIENCE = { timeout: 30_000, interval: 100 };
/** For tests that wait for several looks. */
const LONG = { timeout: 60_000 };

let database: TestDatabase;

beforeEach(async () => {
  database = await createDatabaseOfTest();
});

const startReplica = (env: Readonly<Record<string, string>> = {}) =>
  startServerOfTest(database.url, env, { heartbeatMs: 200 });

async function readId(): Promise<string | undefined> {
  const [row] = await database.query<{ id: string }>("select id from installation");
  return row?.id;
}

/** Waits until the installation was renewed once, with the reason in the audit and in a replica's log. */
async function expectRenewal(servers: readonly TestServer[], idBefore: string | undefined, why: string) {
  await expect.poll(readId, PATIENCE).not.toBe(idBefore);
  const id = await readId();
  const dropped = (server: TestServer) =>
    server.log.filter(({ msg }) => String(msg).startsWith("the installation was renewed")).length;
  for (const server of servers) await expect.poll(() => dropped(server), PATIENCE).toBe(1);
  expect(await readId()).toBe(id);
  expect(await database.query("select actor, action, reason from audit_events")).toEqual([
    { actor: "onceward-server", action: "RenewInstallation", reason: why },
  ]);
  expect(servers.flatMap(({ log }) => log).filter(({ why: said }) => said === why)).toHaveLength(1);
}

test("a database that goes back under two replicas is renewed, and tokens rise", LONG, async () => {
  const servers = [await startReplica(), await startReplica()];
  const idBefore = await readId();
  const tenant = await createTenant(database);
  const client = connectClient(servers[0] as TestServer, tenant.apiKey);
  const { fencingToken } = await grant(client);
  await expect.poll(async () => Number(await readFloor()), PATIENCE).toBeGreaterThan(0);
  const [{ seconds } = { seconds: 0 }] = await database.query<{ seconds: number }>(
    "select date_part('epoch', clock_timestamp()) as seconds",
  );
  // Both replicas have read a floor that is at most a few seconds old.
  await expect.poll(async () => Number(await readFloor()) / 1e6, PATIENCE).toBeGreaterThan(seconds);
  // A heartbeat between its look and its raise would hide a floor that were lowered in the same database.
  await database.query(
    "update installation set token_floor = token_floor - 3600 * 1000000::bigint, made_in = 'elsewhere'",
  );
  await expectRenewal(servers, idBefore, "the floor of fencing tokens went back");
  expect((await grant(client, { key: "order-2" })).fencingToken).toBeGreaterThan(fencingToken);
});

async function readFloor(): Promise<string | undefined> {
  const [row] = await database.query<{ floor: string }>("select token_floor as floor from installation");
  return row?.floor;
}

test("rows that were restored into the same tables renew the installation", LONG, async () => {
  const server = await startReplica();
  const idBefore = await readId();
  await database
    .query(`with kept as (delete from installation returning *) select * from kept`)
    .then(([row]) =>
      database.query("insert into installation select * from json_populate_record(null::installation, $1)", [
        JSON.stringify(row),
      ]),
    );
  await expectRenewal([server], idBefore, "the installation's id was made in another database");
});

test("the first replica after half a minute changes the installation's id, without an event", async () => {
  const first = await startReplica();
  await expect.poll(async () => Number(await readFloor()), PATIENCE).toBeGreaterThan(0);
  const idBefore = await readId();
  await first.stop();
  await database.query(
    `update installation
        set token_floor = token_floor - 31 * 1000000, made_in = database_identity(pg_current_xact_id()::xid)`,
  );
  const server = await startReplica();
  expect(await readId()).not.toBe(idBefore);
  expect(server.log.filter(({ msg }) => String(msg).startsWith("no replica served"))).toHaveLength(1);
  expect(await database.query("select 1 from audit_events")).toEqual([]);
});

test("neither restarts of replicas nor lost connections nor vacuum renew the installation", async () => {
  const first = await startReplica();
  const idBefore = await readId();
  await complete(connectClient(first, (await createTenant(database)).apiKey));
  await first.stop();
  await database.query("vacuum (freeze) installation");
  await database.query("vacuum (full) installation");
  const second = await startReplica();
  await database.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  const { apiKey } = await createTenant(database);
  const claim = () =>
    connectClient(second, apiKey)
      .claim(ORDER)
      .then(
        ({ outcome }) => outcome.case,
        () => "",
      );
  await expect.poll(claim, PATIENCE).toBe("claimed");
  expect(await readId()).toBe(idBefore);
  expect(await database.query("select 1 from audit_events")).toEqual([]);
});

test("a tenant with a lost tenant's id is not answered from that one's cached copies", async () => {
  const server = await startReplica({ ONCEWARD_CACHE_MIB: "64" });
  const lost = await createTenant(database);
  const theirs = connectClient(server, lost.apiKey);
  await complete(theirs);
  expect((await theirs.claim(ORDER)).outcome.case).toBe("completed");
  await database.query("delete from records");
  await database.query("delete from tenants");
  await database.query("insert into tenants (id, name) overriding system value values ($1, 'made-later')", [
    lost.id,
  ]);
  const mine = connectClient(server, await createApiKey(database, { tenantId: lost.id, role: "CALLER" }));
  expect((await mine.claim(ORDER)).outcome.case).toBe("claimed");
});

test("a call without a credential is not another tenant with the configured one's id", async () => {
  const server = await startReplica({ ONCEWARD_ANONYMOUS_TENANT: "anybody" });
  const client = connectClient(server, undefined);
  expect((await client.claim(ORDER)).outcome.case).toBe("claimed");
  await database.query("delete from records");
  await database.query(
    `with gone as (delete from tenants returning id)
     insert into tenants (id, name) overriding system value select id, 'made-later' from gone`,
  );
  const reason = () =>
    errorOf(client.lookup(ORDER)).then(
      (error) => error.reason,
      () => "answered",
    );
  await expect.poll(reason, PATIENCE).toBe("CREDENTIAL_INVALID");
  expect(await database.query("select 1 from records")).toEqual([]);
});
