import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/core/store/migrate.ts";
import { connectClient } from "../helpers/calls/clients.ts";
import { grant, ORDER, success } from "../helpers/calls/verbs.ts";
import { openDatabase } from "../helpers/database/database.ts";
import { useOwnPostgres } from "../helpers/database/own-postgres.ts";
import { describeWithRedis, startRedis } from "../helpers/redis/redis.ts";
import { startServerProcess } from "../helpers/servers/server-process.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const postgres = useOwnPostgres();

/** Returns a file whose contents can be replaced. */
async function secretFile(name: string) {
  const dir = await mkdtemp(join(tmpdir(), "ow-secrets-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const path = join(dir, name);
  return { path, write: (text: string) => writeFile(path, `${text}\n`) };
}

/** A database whose roles, but for the owner, need a password. */
async function createGuarded() {
  const url = await postgres.createDatabase();
  await migrate(url, () => {});
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  const rules = join(postgres.dataDir(), "pg_hba.conf");
  const before = await readFile(rules, "utf8");
  await writeFile(
    rules,
    `local all rotating_1,rotating_2 scram-sha-256\nhost all rotating_1,rotating_2 all scram-sha-256\n`,
  );
  await appendFile(rules, before);
  await database.query("select pg_reload_conf()");
  return {
    url,
    database,
    urlOf(role: string, password: string) {
      const own = new URL(url);
      own.username = role;
      own.password = password;
      return own.href;
    },
    /** Ends the connections of all roles but the owner's. */
    async disconnect() {
      await database.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename like 'rotating_%'",
      );
    },
  };
}

test("a replica connects with the credentials that the file has now, after the password or the role has changed", async () => {
  const { url, database, urlOf, disconnect } = await createGuarded();
  await database.query("create role rotating_1 superuser login password 'first'");
  const file = await secretFile("database_url");
  await file.write(urlOf("rotating_1", "first"));
  const server = await startServerProcess(url, { DATABASE_URL: "", DATABASE_URL_FILE: file.path });
  onTestFinished(() => server.end());
  const { apiKey } = await createTenant(database);
  const client = connectClient(server, apiKey);
  await grant(client, { key: "before" });

  /** Polls until a claim is answered: those of a replica without credentials are UNAVAILABLE. */
  const untilServing = (key: string) =>
    expect
      .poll(() => client.claim({ ...ORDER, key }).then(({ outcome }) => outcome.case, String), {
        timeout: 30_000,
      })
      .toMatch(/^(claimed|inProgress)$/);
  await database.query("alter role rotating_1 password 'second'");
  await file.write(urlOf("rotating_1", "second"));
  await disconnect();
  await untilServing("password changed");

  await database.query("create role rotating_2 superuser login password 'third'");
  await file.write(urlOf("rotating_2", "third"));
  await database.query("alter role rotating_1 nologin");
  await disconnect();
  await untilServing("role changed");
  expect(
    await database.query("select distinct usename from pg_stat_activity where application_name = 'onceward'"),
  ).toEqual([{ usename: "rotating_2" }]);
});

describeWithRedis("with Redis", () => {
  test("a replica connects with the password that the file has now", async () => {
    const redis = await startRedis({ args: ["--requirepass", "first"], connect: { password: "first" } });
    onTestFinished(() => redis.stop());
    const { url, database } = await createGuarded();
    const file = await secretFile("redis_url");
    const urlWith = (password: string) => `redis://:${password}@127.0.0.1:${redis.port}`;
    await file.write(urlWith("first"));
    const server = await startServerProcess(url, { REDIS_URL_FILE: file.path });
    onTestFinished(() => server.end());
    const { apiKey } = await createTenant(database);
    const client = connectClient(server, apiKey);
    let count = 0;

    /** Polls until a completion is cached in Redis. */
    const untilCached = () =>
      expect
        .poll(
          async () => {
            const key = `order-${count++}`;
            const { fencingToken } = await grant(client, { key });
            await client.complete({ ...ORDER, key, fencingToken, result: success("paid") });
            return redis.command("DBSIZE");
          },
          { timeout: 30_000 },
        )
        .toBeGreaterThan(0);
    await untilCached();
    await redis.command("CONFIG", "SET", "requirepass", "second");
    await file.write(urlWith("second"));
    await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
    await redis.command("FLUSHALL");
    await untilCached();
  });
});
