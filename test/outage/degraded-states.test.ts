import { beforeEach, expect, onTestFinished, test } from "vitest";
import { formatApiKey, generateApiKey } from "../../server/src/access/api-key.ts";
import type { ServerTuning } from "../../server/src/replica/connect.ts";
import { connectOperator, type OperatorClient } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { openConnection, untilBlocked } from "../support/database/connections.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { describeWithRedis, startRedis } from "../support/redis/redis.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const PATIENCE = { timeout: 60_000 };
/** The server's is a second. */
const LOOK_MS = 50;
/** The server's is three seconds. */
const HEARTBEAT_MS = 200;
const OPERATOR_KEY = formatApiKey(generateApiKey());

const database = useDatabase();
let server: TestServer;
let operator: OperatorClient;

beforeEach(async () => {
  await database.query("truncate records");
});

async function start(
  url: string,
  env: Readonly<Record<string, string>> = {},
  tuning: ServerTuning = { degradedLookMs: LOOK_MS, heartbeatMs: HEARTBEAT_MS },
): Promise<void> {
  server = await startServerOfTest(url, { ONCEWARD_OPERATOR_KEY: OPERATOR_KEY, ...env }, tuning);
  operator = connectOperator(server, OPERATOR_KEY);
}

/** Runs several calls again and again, regardless of their answers, until the function that is returned is called. */
function repeatAll(calls: readonly (() => Promise<unknown>)[]): () => Promise<unknown> {
  let ended = false;
  const repeats = calls.map(async (call) => {
    while (!ended) await call().catch(() => {});
  });
  return () => {
    ended = true;
    return Promise.all(repeats);
  };
}

/** Locks all records until the returned connection rolls back. */
async function lockRecords() {
  const locker = await openConnection(database);
  await locker.query("begin");
  await locker.query("lock table records in access exclusive mode");
  return locker;
}

/** Makes every deletion of a record fail until the function `keep` is dropped, at the latest when the test ends. */
async function keepRecords(): Promise<void> {
  await database.query(
    "create function keep() returns trigger language plpgsql as $$ begin raise lock_not_available; end $$",
  );
  onTestFinished(() => database.query("drop function if exists keep cascade").then(() => {}));
  await database.query("create trigger keep before delete on records for each row execute function keep()");
}

/** Returns the states that the metric reports, the answer of the replica, and the list of all replicas. */
async function reported() {
  const metrics = [...(await readMetrics(server))].flatMap(([name, value]) => {
    const [, reason] = /^onceward_degraded\{reason="(\w+)"\}$/.exec(name) ?? [];
    return reason !== undefined && value === 1 ? [reason] : [];
  });
  const { degraded: info, replicaId } = await operator.getServerInfo({});
  return { metrics, info, replicaId };
}

async function listed(): Promise<readonly string[] | undefined> {
  const { replicaId } = await operator.getServerInfo({});
  const { replicas } = await operator.listReplicas({});
  return replicas.find(({ id }) => id === replicaId)?.degraded;
}

/** Waits until the metric and the replica's answer report exactly these states. */
async function untilReported(reasons: readonly string[]): Promise<void> {
  await expect.poll(reported, PATIENCE).toMatchObject({ metrics: reasons, info: reasons });
}

/** Returns the log's lines about degraded states: `+reason` where one began, `-reason` where it ended. */
function logged(): string[] {
  return server.log.flatMap(({ msg, reason, level }) => {
    if (msg === "the replica is degraded" && level === 40) return [`+${reason}`];
    return msg === "the replica is no longer degraded" && level === 30 ? [`-${reason}`] : [];
  });
}

test("a replica without its database says so, and answers its operator", async () => {
  const { proxy, url } = await proxyDatabase(database.url);
  await start(url);
  await untilReported([]);
  const before = await operator.getServerInfo({});
  proxy.setMode("refuse");
  await untilReported(["database_unreachable"]);
  expect(await operator.getServerInfo({})).toEqual({ ...before, degraded: ["database_unreachable"] });
  proxy.setMode("forward");
  await untilReported([]);
  expect(logged()).toEqual(["+database_unreachable", "-database_unreachable"]);
});

test("the answer names the database as away as soon as it does not answer", async () => {
  const { proxy, url } = await proxyDatabase(database.url);
  // The states themselves are looked at once an hour.
  await start(url, {}, { degradedLookMs: 3_600_000 });
  proxy.setMode("refuse");
  expect((await operator.getServerInfo({})).degraded).toEqual(["database_unreachable"]);
  proxy.setMode("forward");
  expect((await operator.getServerInfo({})).degraded).toEqual([]);
});

test("a schema that a newer server migrated is reported until it is this server's again", async () => {
  await start(database.url);
  await untilReported([]);
  await database.query("insert into schema_migrations (name, run_on) values ('9999_newer', now())");
  await untilReported(["schema_ahead"]);
  await expect.poll(listed, PATIENCE).toEqual(["schema_ahead"]);
  await database.query("delete from schema_migrations where name = '9999_newer'");
  await untilReported([]);
  await expect.poll(listed, PATIENCE).toEqual([]);
  expect(logged()).toEqual(["+schema_ahead", "-schema_ahead"]);
});

test("a pool of busy connections is reported, and not taken for an unreachable database", async () => {
  await start(database.url, { ONCEWARD_POOL_SIZE: "2" });
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await client.lookup(ORDER);
  const locker = await lockRecords();
  const stopLoads = repeatAll([
    () => client.claim(ORDER),
    () => client.lookup(ORDER),
    () => client.release({ ...ORDER, fencingToken: 1n }),
  ]);
  await untilBlocked(database);
  await untilReported(["pool_saturated"]);
  await expect.poll(listed, PATIENCE).toEqual(["pool_saturated"]);
  const stopped = stopLoads();
  await locker.query("rollback");
  await stopped;
  await untilReported([]);
  expect(logged()).toEqual(["+pool_saturated", "-pool_saturated"]);
});

test("a replica whose connections for calls are all busy still stores its heartbeats", async () => {
  await start(database.url, { ONCEWARD_POOL_SIZE: "2" });
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await client.claim(ORDER);
  const locker = await lockRecords();
  const stopLoads = repeatAll([
    () => client.claim({ ...ORDER, key: crypto.randomUUID() }),
    () => client.release({ ...ORDER, fencingToken: 1n }),
  ]);
  // Each pair of statements that hold both connections, with the heartbeats that were stored meanwhile.
  const heartbeats = new Map<string, Set<string>>();
  const mostHeartbeats = async () => {
    const [sample] = await database.query<{ statements: string[]; seen: string }>(
      `select (select array_agg(pid || ' ' || query_start order by pid)
                 from pg_stat_activity
                where datname = current_database() and application_name = 'onceward'
                  and wait_event_type = 'Lock' and query ~ 'records as r') as statements,
              max(seen_at)::text as seen
         from replicas`,
    );
    if (sample?.statements?.length === 2) {
      const name = sample.statements.join();
      heartbeats.set(name, (heartbeats.get(name) ?? new Set()).add(sample.seen));
    }
    return Math.max(0, ...[...heartbeats.values()].map((seen) => seen.size));
  };
  await expect.poll(mostHeartbeats, { ...PATIENCE, interval: 20 }).toBeGreaterThan(2);
  const stopped = stopLoads();
  await locker.query("rollback");
  await stopped;
});

test("a sweep that cannot delete a record due for an hour is reported until the record is gone", async () => {
  await start(database.url, { ONCEWARD_SWEEP_INTERVAL: "100ms" });
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await client.claim(ORDER);
  await keepRecords();
  await database.query(
    "update records set expires_at = now() - interval '1 hour', sweep_at = now() - interval '1 hour'",
  );
  await untilReported(["sweep_behind"]);
  await expect.poll(listed, PATIENCE).toEqual(["sweep_behind"]);
  expect((await readMetrics(server)).get("onceward_sweep_lag_seconds")).toBeGreaterThan(3000);
  await database.query("drop function keep cascade");
  await untilReported([]);
  expect(logged()).toEqual(["+sweep_behind", "-sweep_behind"]);
});

test("a late sweep is reported until it is less than 30 s late", async () => {
  const tenant = await createTenant(database);
  await start(database.url, { ONCEWARD_SWEEP_INTERVAL: "100ms" });
  const client = connectClient(server, tenant.apiKey);
  const late = { ...ORDER, key: "late" };
  for (const id of [ORDER, late]) await client.claim(id);
  await keepRecords();
  await database.query(
    `update records
        set expires_at = now() - interval '1 hour',
            sweep_at = now() - case key when $1 then interval '1 hour' else interval '40 seconds' end`,
    [late.key],
  );
  await untilReported(["sweep_behind"]);
  // No sweep deletes the other one meanwhile: its trigger fires.
  const connection = await openConnection(database);
  await connection.query("set session_replication_role = replica");
  await connection.query("delete from records where key = $1", [late.key]);
  const lagS = async () => (await readMetrics(server)).get("onceward_sweep_lag_seconds");
  await expect.poll(lagS, PATIENCE).toBeLessThan(3600);
  // Each heartbeat comes after several looks at the state.
  const [beat] = await database.query<{ at: string }>("select max(seen_at)::text as at from replicas");
  const laterBeat = () =>
    database.query("select from replicas where seen_at > $1::timestamptz + interval '0.5 s'", [beat?.at]);
  await expect.poll(async () => (await laterBeat()).length, PATIENCE).toBe(1);
  expect(logged()).toEqual(["+sweep_behind"]);
});

describeWithRedis("Redis", () => {
  test("that stopped is reported as bypassed until it works again", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    await start(database.url, { REDIS_URL: redis.url });
    await repeatOften(connectClient(server, (await createTenant(database)).apiKey));
    await redis.kill();
    await untilReported(["redis_bypassed"]);
    await expect.poll(listed, PATIENCE).toEqual(["redis_bypassed"]);
    await redis.restart();
    await untilReported([]);
    // While Redis starts, a check may find it working and the next one not.
    expect(new Set(logged())).toEqual(new Set(["+redis_bypassed", "-redis_bypassed"]));
    expect([logged().at(0), logged().at(-1)]).toEqual(["+redis_bypassed", "-redis_bypassed"]);
  });
});
