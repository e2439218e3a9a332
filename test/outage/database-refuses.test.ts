import type pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { errorOf } from "../support/calls/errors.ts";
import { expectReplays, startLoad } from "../support/calls/steady-load.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { openConnection } from "../support/database/connections.ts";
import type { TestServer } from "../support/servers/server.ts";
import { startServerOfTest, useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client } = useCaller({ database, server });

/** Ends all connections of servers to this database. @returns the backends' process numbers. */
async function terminateConnections(): Promise<number[]> {
  const ended = await database.query<{ pid: number }>(
    `select pid, pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'onceward'`,
  );
  return ended.map(({ pid }) => pid);
}

/** Ends all connections, and resolves once no call can use one of them. */
async function replaceConnections(): Promise<void> {
  const ended = await terminateConnections();
  const left = () => database.query("select from pg_stat_activity where pid = any ($1)", [ended]);
  await vi.waitUntil(async () => (await left()).length === 0, { timeout: 30_000, interval: 5 });
}

/** Changes a setting of the database for new connections, and ends the existing ones. */
async function setForAll(setting: string): Promise<void> {
  const [row] = await database.query<{ name: string }>("select current_database() as name");
  await database.query(`alter database ${row?.name} ${setting}`);
  await replaceConnections();
}

test("callers continue after all connections end under load; nothing acknowledged is lost", async () => {
  // A namespace of its own: where most claims find a record, as at the end here, they read first and need no write.
  const load = startLoad(await connectCrowd([server], tenant.apiKey, 8), "loaded");
  for (let round = 0; round < 5; round++) {
    await load.more(30);
    await terminateConnections();
  }
  await load.more(30);
  await load.stop();
  await expectReplays(client, "loaded", load);
}, 60_000);

test("a row that another session has locked delays its own call, not its batch", async () => {
  const held = await grant(client, { key: "locked" });
  const other = await openConnection(database);
  await other.query("begin");
  await other.query("update records set owner = owner where tenant_id = $1 and key = 'locked'", [tenant.id]);
  const keys = ["before", "locked", "next", "other"];
  const { items } = await client.batch({
    items: keys.map((key) => ({ request: { case: "claim", value: { ...ORDER, key } } })),
  });
  const answers = items.map(({ response }) =>
    response.case === "claim" ? response.value.outcome.case : response.case,
  );
  expect(answers).toEqual(["claimed", "error", "claimed", "claimed"]);
  const completing = client.complete({
    ...ORDER,
    key: "locked",
    fencingToken: held.fencingToken,
    result: success("paid"),
  });
  expect(await errorOf(completing)).toMatchObject({
    code: "Unavailable",
    reason: "RECORD_CONTENDED",
    retryable: true,
  });
  await other.query("commit");
  expect((await client.claim({ ...ORDER, key: "locked" })).outcome.case).toBe("inProgress");
});

test("a read-only database refuses writes and answers reads until it is writable again", async () => {
  const { fencingToken } = await grant(client, { key: "read-only" });
  await setForAll("set default_transaction_read_only = on");
  onTestFinished(() => setForAll("reset default_transaction_read_only"));
  const id = { ...ORDER, key: "read-only" };
  const unavailable = { code: "Unavailable", reason: "DATABASE_UNAVAILABLE", retryable: true };
  expect(await errorOf(client.complete({ ...id, fencingToken, result: success("paid") }))).toMatchObject(
    unavailable,
  );
  expect(await errorOf(client.claim(id))).toMatchObject(unavailable);
  expect((await client.lookup(id)).record?.fencingToken).toBe(fencingToken);
  await setForAll("reset default_transaction_read_only");
  await client.complete({ ...id, fencingToken, result: success("paid") });
});

test("a database without free connections is unavailable until it accepts one again", async () => {
  await grant(client, { key: "crowded" });
  const [row] = await database.query<{ name: string }>("select current_database() as name");
  const admin = await openConnection(database);
  // The limit does not apply to superusers: the server uses another role.
  const guest = connectClient(await startAsGuest(admin, row?.name ?? ""), tenant.apiKey);
  await admin.query(`alter database ${row?.name} connection limit 0`);
  await replaceConnections();
  expect(await errorOf(guest.claim({ ...ORDER, key: "crowded" }))).toMatchObject({
    code: "Unavailable",
    reason: "DATABASE_UNAVAILABLE",
    retryable: true,
  });
  await admin.query(`alter database ${row?.name} connection limit -1`);
  expect((await guest.claim({ ...ORDER, key: "crowded" })).outcome.case).toBe("inProgress");
});

/** Starts a server whose role is not a superuser, so that limits apply. */
async function startAsGuest(admin: pg.Client, name: string): Promise<TestServer> {
  const role = `guest_of_${name}`;
  await admin.query(`create role ${role} login`);
  await admin.query(`grant select, insert, update, delete on all tables in schema public to ${role}`);
  await admin.query(`grant usage on all sequences in schema public to ${role}`);
  const url = new URL(database.url);
  url.username = role;
  onTestFinished(async () => {
    await admin.query(`drop owned by ${role}`);
    await admin.query(`drop role ${role}`);
  });
  return await startServerOfTest(url.href, { ONCEWARD_CACHE_MIB: "0" });
}
