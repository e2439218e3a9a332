import { expect, onTestFinished, test, vi } from "vitest";
import { raiseTokenFloor } from "../../server/src/database/installation.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { createWatch } from "../support/database/installation-watch.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const PATIENCE = { timeout: 30_000, interval: 50 };
const RETRY_MS = 10_000;
/** More than a replica's maximum of renewals for the same reason. */
const FAILURES = 120;
/** For failures that each take a connection, on a busy machine. */
const LONG_MS = 60_000;

/** Lowers the floor of tokens by a minute, as a restore does. */
const LOWER_FLOOR = `
update installation
   set token_floor = token_floor - 60000000, made_in = database_identity(pg_current_xact_id()::xid)`;

async function readId(database: TestDatabase): Promise<string | undefined> {
  const [row] = await database.query<{ id: string }>("select id from installation");
  return row?.id;
}

/** Returns the last number of a sequence of ids. Each attempt to renew the installation raises those of jobs by 10^9. */
async function readIds(database: TestDatabase, of: "tenants" | "record_jobs"): Promise<number> {
  const [row] = await database.query<{ last: string }>(`select last_value as last from ${of}_id_seq`);
  return Number(row?.last);
}

/** Returns a watch that has looked once, and whose clock does not advance. */
async function setUp(database: TestDatabase) {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { watch, changes } = createWatch();
  const pool = openStorePool(database);
  await raiseTokenFloor(pool, 0);
  await watch.look(pool);
  return { changes, look: () => watch.look(pool) };
}

test.each([
  ["the floor of tokens went back", LOWER_FLOOR, 1],
  ["the id was made in another database", "update installation set made_in = 'elsewhere'", 0],
])(
  "a renewal because %s succeeds once, however often it failed before",
  async (_why, change, losses) => {
    const database = await createDatabaseOfTest();
    const { changes, look } = await setUp(database);
    const idBefore = await readId(database);
    await database.query(change);
    await database.query("alter table audit_events rename to events_away");
    for (let failures = 0; failures < FAILURES; failures++) {
      await expect(look()).rejects.toThrow();
      // Six of these checks attempt to renew.
      vi.advanceTimersByTime(RETRY_MS / 20);
    }
    expect([await readId(database), changes]).toEqual([idBefore, []]);
    await database.query("alter table events_away rename to audit_events");
    // As the heartbeat of another replica does, which knows of no earlier floor.
    await raiseTokenFloor(openStorePool(database), 0);
    vi.advanceTimersByTime(RETRY_MS);
    for (let looks = 0; looks < 3; looks++) expect(await look()).toBe(true);
    expect(changes).toEqual([await readId(database)]);
    expect(changes).not.toContain(idBefore);
    const marked = await database.query("select from installation where records_lost_at is not null");
    expect(marked).toHaveLength(losses);
    expect(await database.query("select action from audit_events")).toEqual([
      { action: "RenewInstallation" },
    ]);
  },
  LONG_MS,
);

test("a renewal that fails is not attempted again for 10 s, however many connections look", async () => {
  const database = await createDatabaseOfTest();
  const { look } = await setUp(database);
  await database.query("update installation set made_in = 'elsewhere'");
  await database.query("alter table audit_events rename to events_away");
  const attemptsIn = async (looks: () => Promise<unknown>) => {
    const before = await readIds(database, "record_jobs");
    await looks();
    return Math.round(((await readIds(database, "record_jobs")) - before) / 1e9);
  };
  const lookAtOnce = () => Promise.all(Array.from({ length: 5 }, () => expect(look()).rejects.toThrow()));
  expect(await attemptsIn(() => expect(look()).rejects.toThrow())).toBe(1);
  expect(await attemptsIn(lookAtOnce)).toBe(0);
  vi.advanceTimersByTime(RETRY_MS - 1);
  expect(await attemptsIn(lookAtOnce)).toBe(0);
  vi.advanceTimersByTime(1);
  expect(await attemptsIn(lookAtOnce)).toBe(1);
});

test("renewals that fail use up no ids of tenants, and one with the last id succeeds", async () => {
  const database = await createDatabaseOfTest();
  const { look } = await setUp(database);
  const idBefore = await readId(database);
  const tenantIds = await readIds(database, "tenants");
  await database.query("update installation set made_in = 'elsewhere'");
  await database.query("alter table audit_events rename to events_away");
  await expect(look()).rejects.toThrow();
  expect(await readIds(database, "tenants")).toBe(tenantIds);
  await database.query("alter table events_away rename to audit_events");
  await database.query("select setval('tenants_id_seq', 2147483600)");
  vi.advanceTimersByTime(RETRY_MS);
  expect(await look()).toBe(true);
  expect([(await readId(database)) === idBefore, await readIds(database, "tenants")]).toEqual([
    false,
    2_147_483_647,
  ]);
});

test("concurrent looks renew the installation once, and none of them fails", async () => {
  const database = await createDatabaseOfTest();
  const { changes, look } = await setUp(database);
  await database.query("update installation set made_in = 'elsewhere'");
  expect(await Promise.all(Array.from({ length: 5 }, look))).toEqual(Array(5).fill(true));
  expect(changes).toHaveLength(1);
});

test("while checks fail, calls are refused with a retry delay; then the service works", async () => {
  const database = await createDatabaseOfTest();
  const server = await startServerOfTest(database.url, {}, { heartbeatMs: 200 });
  const client = connectClient(server, (await createTenant(database)).apiKey);
  const { fencingToken } = await grant(client);
  const idBefore = await readId(database);
  await database.query("alter table installation rename to installation_away");
  await endConnections(database);
  for (let calls = 0; calls < 20; calls++) {
    expect(await errorOf(client.lookup(ORDER))).toMatchObject({
      reason: "DATABASE_UNAVAILABLE",
      retryable: true,
    });
  }
  const failedBeats = async () =>
    (await readMetrics(server)).get('onceward_background_errors_total{task="heartbeat"}') ?? 0;
  await expect.poll(failedBeats, PATIENCE).toBeGreaterThan(1);
  const connections = async () => {
    const metrics = await readMetrics(server);
    return ["busy", "awaited"].map((state) => metrics.get(`onceward_pool_connections{state="${state}"}`));
  };
  // A heartbeat may look just now.
  await expect.poll(connections, PATIENCE).toEqual([0, 0]);
  await database.query("alter table installation_away rename to installation");
  expect((await client.lookup(ORDER)).record?.fencingToken).toBe(fencingToken);
  const lastBeat = () =>
    database.query("select 1 from replicas where seen_at > now() - interval '2 seconds'");
  await expect.poll(async () => (await lastBeat()).length, PATIENCE).toBe(1);
  expect(await readId(database)).toBe(idBefore);
  expect(await database.query("select 1 from audit_events")).toEqual([]);
}, 60_000);

/** Ends the connections of servers, so that the next statements need new ones. */
async function endConnections(database: TestDatabase): Promise<void> {
  await database.query(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and application_name = 'onceward'`,
  );
}
