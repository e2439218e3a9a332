import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { openDatabase } from "../support/database/database.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { newDir } from "../support/new-dir.ts";
import { describeWithRedis, startRedis } from "../support/redis/redis.ts";
import {
  changePasswords,
  startCluster,
  startSentinels,
  type Topology,
} from "../support/redis/redis-topologies.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

const postgres = useOwnPostgres();

/** Returns a file whose contents can be replaced. */
async function secretFile(name: string) {
  const dir = await newDir();
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

test("a replica connects with the file's current credentials after password or role change", async () => {
  const { url, database, urlOf, disconnect } = await createGuarded();
  await database.query("create role rotating_1 superuser login password 'first'");
  const file = await secretFile("database_url");
  await file.write(urlOf("rotating_1", "first"));
  const server = await startProcessOfTest(url, { DATABASE_URL: "", DATABASE_URL_FILE: file.path });
  const client = connectClient(server, (await createTenant(database)).apiKey);
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

/** Starts a Redis that asks for a password. */
async function startServer(
  password: string,
): Promise<Pick<Topology, "url" | "servers" | "masters" | "changePassword" | "stop">> {
  const redis = await startRedis({ args: ["--requirepass", password], connect: { password } });
  const url = `redis://:${password}@127.0.0.1:${redis.port}`;
  const changePassword = (changed: string) => changePasswords([redis], changed);
  return { url, servers: [redis], masters: [redis], changePassword, stop: () => redis.stop() };
}

describeWithRedis("with Redis", () => {
  test.each([
    ["a Redis server", startServer],
    ["a Redis Cluster", startCluster],
    ["a Redis behind sentinels", startSentinels],
  ])("a replica connects to %s with the password that the file has now", async (_, start) => {
    const redis = await start("first");
    onTestFinished(() => redis.stop());
    const { url, database } = await createGuarded();
    const file = await secretFile("redis_url");
    await file.write(redis.url);
    const server = await startProcessOfTest(url, { REDIS_URL_FILE: file.path, ONCEWARD_CACHE_MIB: "0" });
    const client = connectClient(server, (await createTenant(database)).apiKey);
    const onEach = (...command: [string, ...string[]]) =>
      Promise.all(redis.servers.map((server) => server.command(...command)));

    const subscribers = async () =>
      (await onEach("PUBSUB", "CHANNELS")).filter((channels) => String(channels) !== "").length;

    /** Polls until each server has a cached completion. */
    const untilCached = () =>
      expect
        .poll(
          async () => {
            await repeatOften(client);
            return Math.min(...(await onEach("DBSIZE")).map(Number));
          },
          { timeout: 30_000 },
        )
        .toBeGreaterThan(0);
    await untilCached();
    await redis.changePassword("second");
    await file.write(redis.url.replace("first", "second"));
    await onEach("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await onEach("CLIENT", "KILL", "TYPE", "pubsub");
    await Promise.all(redis.masters.map((server) => server.command("FLUSHALL")));
    await untilCached();
    await expect.poll(subscribers, { timeout: 30_000 }).toBeGreaterThan(0);
  });
});
