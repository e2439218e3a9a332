import { readFile, rm } from "node:fs/promises";
import { durationFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { expect, inject, onTestFinished, test } from "vitest";
import { distributeRecords } from "../../server/src/citus/distribute-records.ts";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { expectReplays, startLoad } from "../support/calls/steady-load.ts";
import { success } from "../support/calls/verbs.ts";
import { type ChaosPostgres, startChaosPostgres } from "../support/database/chaos-postgres.ts";
import { addNodes, addressOf, nameItself } from "../support/database/citus.ts";
import { type OpenDatabase, openDatabase } from "../support/database/database.ts";
import { runStatements } from "../support/database/statement-runner.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { ALERT_TIMEOUT_MS, startRehearsal } from "../support/deploy/rehearsal.ts";
import { makeDataDir } from "../support/processes/data-dir.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const MARK_LOSS = await readFile(new URL("../../deploy/postgres/mark-loss.sql", import.meta.url), "utf8");
/** Alerts fire after a sixtieth of their time. */
const ALERT_SPEED = 60;

const SETTINGS = {
  max_prepared_transactions: "120",
  wal_level: "logical",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
};

/** Starts a Citus of its own, because one of its workers ends; the test's end stops it. */
async function startCitus() {
  const parent = await makeDataDir("ow-citus-failover-");
  const cleanUp = new AsyncDisposableStack();
  onTestFinished(() => cleanUp.disposeAsync());
  cleanUp.defer(() => rm(parent, { recursive: true, force: true }));
  const start = async () => {
    const options = { binaries: inject("postgresBinaries"), settings: SETTINGS };
    const node = cleanUp.use(await startChaosPostgres(parent, () => {}, options));
    await nameItself(node.url);
    await runStatements(node.url, "create extension citus");
    return node;
  };
  const coordinator = await start();
  const workers = [await start(), await start()] as const;
  await addNodes({ coordinatorUrl: coordinator.url, workerUrls: workers.map(({ url }) => url) });
  await migrate(coordinator.url, () => {});
  await distributeRecords(coordinator.url, { shards: 4 });
  const database = cleanUp.adopt(openDatabase(coordinator.url), (opened) => opened.close());
  return { database, workers, start };
}

const idOf = (key: string) => ({ namespace: "charges", key });
const KEYS = Array.from({ length: 24 }, (_, key) => String(key));
const [COMPLETED, HELD] = [KEYS.slice(0, 12), KEYS.slice(12)];

async function claim(client: IdempotencyClient, key: string): Promise<bigint> {
  return granted(await client.claim({ ...idOf(key), lease: { seconds: 600n } })).fencingToken;
}

/** Returns the keys whose records cannot be read. */
async function unavailable(client: IdempotencyClient): Promise<readonly string[]> {
  const errors = await Promise.all(
    KEYS.map((key) =>
      client.lookup(idOf(key)).then(
        () => undefined,
        (error: unknown) => ({ key, ...describeError(error) }),
      ),
    ),
  );
  return errors.flatMap((error) => {
    if (error === undefined) return [];
    expect(error).toMatchObject({ reason: "DATABASE_UNAVAILABLE", retryable: true });
    return [error.key];
  });
}

async function shardsUnreachable(server: TestServer): Promise<number | undefined> {
  return (await readMetrics(server)).get('onceward_degraded{reason="shards_unreachable"}');
}

/** Returns the keys whose records lie on a worker, and Citus' number of its node. */
async function keysOn(database: OpenDatabase, worker: ChaosPostgres) {
  const [node] = await database.query<{ id: number; keys: string[] }>(
    `select n.nodeid as id, array_agg(k.key) as keys
       from unnest($1::text[]) as k (key)
       join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('records', k.key)
       join pg_dist_node n using (groupid)
      where n.nodename = $2
      group by n.nodeid`,
    [KEYS, new URL(worker.url).searchParams.get("host")],
  );
  if (node === undefined) throw new Error("the worker holds no key");
  return { id: node.id, keys: KEYS.filter((key) => node.keys.includes(key)) };
}

/** Starts a replica, with a tenant of its own. */
async function startReplica(database: OpenDatabase) {
  const server = await startServerOfTest(database.url, {}, { heartbeatMs: 50 });
  const tenant = await createTenant(database);
  return { server, tenant, client: connectClient(server, tenant.apiKey) };
}

test("while a worker hangs, exactly its keys are refused and the replica is degraded", async () => {
  const { database, workers } = await startCitus();
  const [worker] = workers;
  const { keys } = await keysOn(database, worker);
  const { server, client } = await startReplica(database);
  worker.signal("SIGSTOP");
  await expect.poll(() => unavailable(client)).toEqual(keys);
  await expect.poll(() => shardsUnreachable(server)).toBe(1);
  expect(server.log).toContainEqual(expect.objectContaining({ msg: "a node of Citus does not answer" }));
  worker.signal("SIGCONT");
  await expect.poll(() => unavailable(client)).toEqual([]);
  await expect.poll(() => shardsUnreachable(server)).toBe(0);
});

describeWithPrograms(["prometheus"], "Prometheus", () => {
  test("pages while a worker does not answer, and no longer when it does", { timeout: 240_000 }, async () => {
    const { database, workers } = await startCitus();
    const { server, client } = await startReplica(database);
    const rehearsal = await startRehearsal(ALERT_SPEED);
    onTestFinished(() => rehearsal.stop());
    await rehearsal.scrape("onceward-citus", [server]);
    workers[0].signal("SIGSTOP");
    await expect.poll(() => unavailable(client)).not.toEqual([]);
    await rehearsal.untilAlerts("onceward-citus", "OncewardShardsUnreachable");
    workers[0].signal("SIGCONT");
    await expect
      .poll(() => rehearsal.firing("onceward-citus"), { timeout: ALERT_TIMEOUT_MS })
      .not.toContain("OncewardShardsUnreachable");
  });
});

test.each(["killed", "hanging"])(
  "a replica starts while a worker is %s, and serves its keys once it answers",
  async (state) => {
    const { database, workers } = await startCitus();
    const [worker] = workers;
    const { id, keys } = await keysOn(database, worker);
    const before = await startReplica(database);
    for (const key of KEYS) await claim(before.client, key);
    if (state === "killed") await worker.kill();
    else worker.signal("SIGSTOP");
    const { server, client } = await startReplica(database);
    await expect.poll(() => unavailable(client)).toEqual(keys);
    await expect.poll(() => shardsUnreachable(server)).toBe(1);
    for (const key of KEYS.filter((other) => !keys.includes(other))) await claim(client, key);
    if (state === "killed") {
      // Its socket, and so its address, is another one then.
      await worker.restart();
      await nameItself(worker.url);
      await database.query(`select citus_update_node($1, ${addressOf(worker.url)})`, [id]);
    } else worker.signal("SIGCONT");
    await expect.poll(() => unavailable(client)).toEqual([]);
    await expect.poll(() => shardsUnreachable(server)).toBe(0);
    for (const key of keys) await claim(client, key);
  },
);

test("a replica that reaches none of the workers refuses to start, and names them", async () => {
  const { database, workers } = await startCitus();
  const addresses = workers.map(({ url }) => {
    const { searchParams, port } = new URL(url);
    return `${searchParams.get("host")}:${port}`;
  });
  for (const worker of workers) await worker.kill();
  const refusal = await startTestServer(database.url).catch(String);
  expect(refusal).toMatch(
    /^Error: This replica can serve no key, because it does not reach any of the nodes that hold the records: \S+, \S+\.$/,
  );
  for (const address of addresses) expect(refusal).toContain(address);
});

test("a worker that fails over is found at its new address: nothing is lost, tokens rise", async () => {
  const { database, workers } = await startCitus();
  const [worker] = workers;
  const { id, keys } = await keysOn(database, worker);
  const { server, client } = await startReplica(database);
  const tokens = new Map<string, bigint>();
  for (const key of KEYS) tokens.set(key, await claim(client, key));
  await worker.addStandby();
  for (const key of COMPLETED) {
    await client.complete({ ...idOf(key), fencingToken: tokens.get(key) as bigint, result: success(key) });
  }

  await worker.failOver();
  await expect.poll(() => unavailable(client)).toEqual(keys);
  await expect.poll(() => shardsUnreachable(server)).toBe(1);
  expect((await fetch(`http://127.0.0.1:${server.managementPort}/readyz`)).status).toBe(200);

  await nameItself(worker.url);
  await database.query(`select citus_update_node($1, ${addressOf(worker.url)})`, [id]);
  await expect.poll(() => unavailable(client)).toEqual([]);
  await expect.poll(() => shardsUnreachable(server)).toBe(0);
  for (const key of COMPLETED) {
    const { outcome } = await client.claim(idOf(key));
    expect(outcome).toMatchObject({
      case: "completed",
      value: { result: { payload: success(key).payload } },
    });
  }
  for (const key of HELD) {
    const fencingToken = tokens.get(key) as bigint;
    await client.release({ ...idOf(key), fencingToken });
    expect(await claim(client, key)).toBeGreaterThan(fencingToken);
  }
});

test("a worker is added and killed under load: nothing is lost or granted twice", async () => {
  const { database, start } = await startCitus();
  const { server, client } = await startReplica(database);
  const load = startLoad([client, client, client, client], "charges");
  await load.more(100);
  // As deploy/citus.md has it.
  const added = await start();
  await database.query(`select citus_add_node(${addressOf(added.url)})`);
  await distributeRecords(database.url);
  await database.query("select citus_rebalance_start()");
  await database.query("select citus_rebalance_wait()");
  const { id } = await keysOn(database, added);
  await load.more(100);
  await added.kill();
  await expect.poll(() => shardsUnreachable(server)).toBe(1);
  await added.restart();
  await nameItself(added.url);
  await database.query(`select citus_update_node($1, ${addressOf(added.url)})`, [id]);
  await load.more(100);
  await load.stop();
  await expectReplays(client, "charges", load);
  const { size } = load.acknowledged;
  const attempts = "select sum(attempt)::int as attempts from records where namespace = 'charges'";
  expect(await database.query(attempts)).toEqual([{ attempts: size }]);
});

test("a worker goes back to a backup: where late keys are refused, those that it lost are, too", async () => {
  const { database, workers } = await startCitus();
  const [worker] = workers;
  const { id, keys } = await keysOn(database, worker);
  const { client, tenant } = await startReplica(database);
  await setNamespacePolicy(database, tenant, "late", { late_keys: "REQUIRE_TIME" });
  const timed = (key: string) => ({ namespace: "late", key, keyCreatedAt: timestampNow() });
  const complete = async (key: string) => {
    const of = timed(key);
    const { fencingToken } = granted(await client.claim(of));
    await client.complete({ ...of, fencingToken, result: success(key) });
    return of;
  };
  const [kept = "", held = "", ...lost] = keys;
  await complete(kept);
  const unfinished = timed(held);
  await client.claim({ ...unfinished, lease: durationFromMs(1000) });
  const copy = await worker.copy();
  const afterwards = await Promise.all([...lost, ...KEYS.filter((key) => !keys.includes(key))].map(complete));
  await worker.restore(copy);
  await nameItself(worker.url);
  // As deploy/citus.md has it: replicas know of the loss before they reach the worker.
  const [lose = "", hold = ""] = MARK_LOSS.split(/;$/m);
  await database.query(lose);
  const metBy = (of: ReturnType<typeof timed>) =>
    client.claim(of).then(
      ({ outcome }) => outcome.case,
      (error: unknown) => describeError(error).reason,
    );
  let probes = 0;
  await expect.poll(() => metBy({ ...unfinished, key: `probe-${probes++}` })).toBe("KEY_TOO_OLD");
  const move = `select citus_update_node(${id}, ${addressOf(worker.url)})`;
  await database.query(`begin; ${move}; ${lose}; ${hold}; commit`);
  await expect.poll(() => metBy(timed(kept))).toBe("completed");
  const met = await Promise.all(afterwards.map(async (of) => [of.key, await metBy(of)]));
  const expected = afterwards.map(({ key }) => [key, lost.includes(key) ? "KEY_TOO_OLD" : "completed"]);
  expect(met).toEqual(expected);
  await expect.poll(() => metBy(unfinished)).toBe("ambiguous");
});
