import { randomUUID } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { ListTenantUsageRequest_Order } from "../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import {
  GetUsageRequest_Grouping,
  ListRecordsRequest_Order,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { RecordJob_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { takeRecordJob } from "../../server/src/admin/jobs/job-queue.ts";
import { insertRecordJob } from "../../server/src/admin/jobs/record-jobs.ts";
import { workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import { createAmbiguousCounter } from "../../server/src/admin/records/ambiguous-counter.ts";
import { addUsage } from "../../server/src/admin/usage/add-usage.ts";
import { USAGE_COUNTERS, type UsageCounter } from "../../server/src/admin/usage/usage.ts";
import { createHeartbeat } from "../../server/src/background/heartbeat.ts";
import { CommitWatch } from "../../server/src/database/commit-watch.ts";
import type { Pool } from "../../server/src/database/pool.ts";
import { BEFORE_ALL_REPLICAS, beatReplicaRow, findReplicas } from "../../server/src/database/replicas.ts";
import { takeCount } from "../../server/src/database/tenants/tenant-totals.ts";
import { createDatabaseClockWatch, type DatabaseClockWatch } from "../../server/src/domain/database-clock.ts";
import { beginEncryptionPass, takeEncryptionPage } from "../../server/src/encryption/encryption-pass.ts";
import {
  isTakenOver,
  type TakenOverRow,
  takeOverParameters,
  takeOverRecords,
} from "../../server/src/records/claim/claim-statements.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import { PLAIN_VALUES } from "../../server/src/records/engine/record-values.ts";
import { createRecordStore } from "../../server/src/records/record-store.ts";
import { createTokenFloor } from "../../server/src/records/token-floor.ts";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { claimCommand } from "../support/calls/domain.ts";
import { ageRecords, granted } from "../support/calls/records.ts";
import { RELEASE } from "../support/calls/resolutions.ts";
import { complete, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { setClockAhead, useSettableClock } from "../support/database/clock.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { anyTurn } from "../support/database/jobs.ts";
import { countRows } from "../support/database/time.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import {
  createApiKey,
  createTenant,
  setNamespacePolicy,
  type TestTenant,
} from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";
import { NO_LOAD } from "./stale-statistics/installation.ts";

const OLDEST_FIRST = { state: Record_State.AMBIGUOUS, order: ListRecordsRequest_Order.LEASE_EXPIRY };
const PATIENCE = { timeout: 30_000 };
const LOOK_MS = 50;
const RETENTION_S = 600;
/** As long as a row stays after its retention ended, and more. */
const ENDED_S = RETENTION_S + 600;

const database = useDatabase();
let server: TestServer;

beforeAll(async () => {
  await useSettableClock(database);
  const tuning = { heartbeatMs: LOOK_MS, degradedLookMs: LOOK_MS };
  server = await startTestServer(
    database.url,
    { ONCEWARD_SWEEP_INTERVAL: "100ms", ONCEWARD_USAGE_FLUSH: "100ms" },
    tuning,
  );
});

beforeEach(async () => {
  await setClockAhead(database, 0);
  await untilMovedBy(0);
});

afterAll(() => server?.stop());

async function untilMovedBy(minutes: number): Promise<void> {
  const moved = async () => (await readMetrics(server)).get("onceward_database_clock_moved_seconds");
  await expect.poll(moved, PATIENCE).toBeCloseTo(minutes * 60, -1);
}

async function connectAdminOf({ id }: TestTenant) {
  return connectAdmin(server, await createApiKey(database, { tenantId: id, role: "TENANT_ADMIN" }));
}

async function newCaller(resultRetentionS = RETENTION_S) {
  const tenant = await createTenant(database, {
    key_retention_s: RETENTION_S,
    result_retention_s: resultRetentionS,
  });
  return { tenant, client: connectClient(server, tenant.apiKey) };
}

test.each([
  ["ten minutes", 15],
  ["80 hours", 80 * 60],
])(
  "a clock that is ahead by %s and right again ends no record whose retention has time left",
  async (_, minutes) => {
    const [kept, ended] = [await newCaller(), await newCaller()];
    await complete(kept.client, success("paid"));
    await setClockAhead(database, minutes);
    // Before the replica has seen the clock: the statement itself has the bound.
    await expect(kept.client.claim(ORDER)).rejects.toMatchObject({ code: Code.Unavailable });
    await untilMovedBy(minutes);
    await expect(kept.client.claim(ORDER)).rejects.toThrow(/database's clock was set/);
    await setClockAhead(database, 0);
    await complete(ended.client);
    await ageRecords(database, ended.tenant, ENDED_S);
    await setClockAhead(database, minutes);
    // The sweep looks, and deletes what has ended by the previous clock.
    await expect.poll(() => countRows(database, ended.tenant), PATIENCE).toBe(0);
    expect(await countRows(database, kept.tenant)).toBe(1);

    await setClockAhead(database, 0);
    const { outcome } = await kept.client.claim(ORDER);
    expect(outcome).toMatchObject({ case: "completed" });
  },
);

test("no operation misses a record whose retention ended only by a clock that is ahead", async () => {
  const { client, tenant } = await newCaller();
  const { fencingToken } = await grant(client);
  const claim = { ...ORDER, fencingToken };
  const unknown = { ...claim, key: "never claimed" };
  await setClockAhead(database, 15);
  const operations = {
    complete: () => client.complete({ ...claim, result: success("paid") }),
    release: () => client.release(claim),
    extendLease: () => client.extendLease(claim),
    lookup: () => client.lookup(ORDER),
  };
  const admin = await connectAdminOf(tenant);
  const administration = {
    getRecord: () => admin.getRecord(ORDER),
    resolveRecord: () =>
      admin.resolveRecord({ ...ORDER, reason: "why", resolution: { case: "forget", value: {} } }),
  };
  for (const [name, operate] of Object.entries({ ...operations, ...administration }))
    await expect(operate(), name).rejects.toMatchObject({ code: Code.Unavailable });
  await expect(client.release(unknown)).rejects.toMatchObject({ code: Code.NotFound });
  expect((await client.lookup({ ...ORDER, key: unknown.key })).record).toBeUndefined();

  await setClockAhead(database, 0);
  expect((await operations.complete()).alreadyCompleted).toBe(false);
});

test("lists and counts have records that have ended only by a clock that is ahead", async () => {
  const { client, tenant } = await newCaller();
  await setNamespacePolicy(database, tenant, "held", {
    key_retention_s: RETENTION_S,
    on_lease_expiry: "HOLD",
  });
  await complete(client, success("paid"));
  const held = { ...ORDER, namespace: "held" };
  await grant(client, held);
  await database.query(
    `update records set lease_expires_at = now() - interval '1 s' where tenant_id = $1 and namespace = 'held'`,
    [tenant.id],
  );
  const admin = await connectAdminOf(tenant);
  const read = async () => {
    const lists = [{}, { key: ORDER.key }, OLDEST_FIRST];
    const listed = await Promise.all(lists.map((filter) => admin.listRecords(filter)));
    const { completed } = await admin.countRecords({ namespace: ORDER.namespace });
    const { ambiguous } = await admin.countRecords({ namespace: "held" });
    return { listed: listed.map(({ records }) => records.length), completed, ambiguous };
  };
  const before = await read();
  expect(before).toEqual({ listed: [2, 2, 1], completed: 1n, ambiguous: 1n });
  await setClockAhead(database, 80 * 60);
  expect(await read()).toEqual(before);
});

/** Has an ambiguous record, and makes others. */
async function newHolder(key: string) {
  const { client, tenant } = await newCaller();
  await setNamespacePolicy(database, tenant, "held", {
    key_retention_s: RETENTION_S,
    on_lease_expiry: "HOLD",
  });
  const hold = async (of: string) => {
    granted(await client.claim({ namespace: "held", key: of }));
    await database.query(
      `update records set lease_expires_at = now() - interval '1 s' where tenant_id = $1 and key = $2`,
      [tenant.id, of],
    );
  };
  await hold(key);
  return { tenant, hold, admin: await connectAdminOf(tenant) };
}

test("preview, count and job of a resolution mean the same records while a clock is ahead", async () => {
  const { admin, hold, tenant } = await newHolder("counted");
  await setClockAhead(database, 80 * 60);
  await untilMovedBy(80 * 60);
  const request = { namespace: "held", reason: "asked the provider", resolution: RELEASE };
  expect(await admin.resolveAmbiguousRecords({ ...request, validateOnly: true })).toMatchObject({
    matching: 1n,
  });
  expect(await admin.countAmbiguousRecords({})).toMatchObject({ ambiguous: 1n });
  const { job } = await admin.resolveAmbiguousRecords({ ...request, expectedCount: 1n });
  const [created] = await database.query<{ before_ms: number }>(
    "select (terms -> 'which' ->> 'leaseExpiredBeforeMs')::float8 as before_ms from record_jobs where id = $1",
    [String(job?.id)],
  );
  // Not 80 hours later: the job would reach what becomes ambiguous until then. The course is known to some seconds.
  expect(created?.before_ms).toBeLessThan(Date.now() + 60_000);
  await setClockAhead(database, 0);
  const state = async () => (await admin.getRecordJob({ id: job?.id ?? 0n })).job?.state;
  await expect.poll(state, PATIENCE).toBe(RecordJob_State.DONE);
  const { record } = await admin.getRecord({ namespace: "held", key: "counted" });
  expect(record?.state).toBe(Record_State.RELEASED);

  await hold("counted since");
  await setClockAhead(database, 15);
  const counter = createAmbiguousCounter({
    pool: openStorePool(database),
    databaseClock: { latestMs: () => Date.now() + 1000 },
    tenants: () => [{ id: tenant.id, name: "holder" }],
    onFailed(error) {
      throw error;
    },
  });
  counter.start();
  onTestFinished(() => counter.stop());
  await expect.poll(() => counter.counts().get("holder"), PATIENCE).toBe(1);
});

test("usage of the last day, hour and minutes is that of the previous clock", async () => {
  const { client, tenant } = await newCaller();
  const admin = await connectAdminOf(tenant);
  const operator = connectOperator(server, await createApiKey(database, { role: "OPERATOR" }));
  const read = async () => {
    const [byNamespace, sums, now, listed] = await Promise.all([
      admin.getUsage({}),
      admin.getUsage({ grouping: GetUsageRequest_Grouping.HOUR }),
      admin.getUsageNow({}),
      operator.listTenantUsage({ search: tenant.name, order: ListTenantUsageRequest_Order.USAGE }),
    ]);
    const claims = [byNamespace, sums].map(({ hours }) => hours.map((hour) => hour.claims));
    // Without the minute of the claim, which may end meanwhile.
    const stored = now.minutes.filter(({ minute }) => minute && timestampMs(minute) === row?.atMs);
    return [...claims, now.total?.claims, stored.length, listed.tenants[0]?.recentClaims];
  };
  await complete(client);
  // A minute of the last hour, as a replica stores it.
  const counts = JSON.stringify({ [tenant.id]: [1] });
  const [row] = await database.query<{ atMs: number }>(
    `insert into usage_minutes (minute, replica_id, counts)
     values (date_trunc('minute', now()) - interval '5 minutes', gen_random_uuid(), $1)
     returning date_part('epoch', minute) * 1000 as "atMs"`,
    [counts],
  );
  const expected = [[1n], [1n], 1n, 1, 1n];
  await expect.poll(read, PATIENCE).toEqual(expected);
  await setClockAhead(database, 80 * 60);
  // What happens now was stored by the clock as it was, and is valid again from the next flush on.
  await expect.poll(read, PATIENCE).toEqual(expected);
});

test("what a clock that was ahead has put off begins once it is right again", async () => {
  const { admin } = await newHolder("any");
  await setClockAhead(database, 80 * 60);
  const { job } = await admin.deleteNamespace({ name: "held", force: true });
  await setClockAhead(database, 0);
  const state = async () => (await admin.getRecordJob({ id: job?.id ?? 0n })).job?.state;
  await expect.poll(state, PATIENCE).toBe(RecordJob_State.DONE);

  const unserved = await createUnserved();
  const pool = openStorePool(unserved);
  const { id: tenantId } = await createTenant(unserved, { quota_live_records: 10 });
  await beginEncryptionPass(pool, 1);
  await unserved.query("update encryption_pass set next_page_at = now() + interval '80 hours'");
  expect(await pool.transaction((transaction) => takeEncryptionPage(transaction, 1))).toBeDefined();
  await unserved.query(
    "update tenant_totals set counting_until = now() + interval '80 hours', count_due_at = now() + interval '80 hours'",
  );
  expect(await takeCount(pool)).toBe(tenantId);
  await unserved.query(
    "insert into replicas (id, version, seen_at) values (gen_random_uuid(), 'stopped', now() + interval '80 hours')",
  );
  const clock = { clockAheadMs: undefined, clockMovedMs: 0, clockExpectedMs: undefined };
  const beat = { id: randomUUID(), version: "test", degraded: [], load: NO_LOAD, host: "test", ...clock };
  expect((await beatReplicaRow(pool, beat)).replicas).toBe(1);
  expect(await findReplicas(pool, BEFORE_ALL_REPLICAS, 9)).toMatchObject([{ id: beat.id }]);
});

test("a job created while a clock is ahead forgets what was claimed before it, nothing later", async () => {
  const unserved = await createUnserved();
  const tenant = await createTenant(unserved);
  const clock = { latestMs: () => Date.now() + 1000, hasMoved: () => true };
  const claim = async (key: string) => {
    // Each with a pool of its own: the test's clock is that of new connections.
    const records = createRecordStore(openStorePool(unserved), UNLIMITED);
    const command = claimCommand({ id: { tenantId: tenant.id, namespace: "charges", key } });
    expect(
      await records.claim([command], { atMs: Number.POSITIVE_INFINITY, cancelled: false }),
    ).toMatchObject([{ kind: "claimed" }]);
  };
  await claim("before the clock was set");
  await setClockAhead(unserved, 15);
  await claim("while it was ahead");
  const forget = { tenantId: tenant.id, namespace: "charges", work: { kind: "FORGET" }, delayMs: 0 } as const;
  const pool = openStorePool(unserved);
  await insertRecordJob(pool, forget, clock.latestMs());
  await claim("after the job, while it was ahead");
  await setClockAhead(unserved, 0);
  // As two seconds later: the course is known to a second.
  await unserved.query("update record_jobs set starts_at = starts_at - interval '2 s'");
  await claim("after the job, by the right clock");
  await unserved.query(
    "update records set claimed_at = claimed_at - interval '4 s' where key like 'before%'",
  );
  expect(await workBatch(pool, anyTurn(10), PLAIN_VALUES, clock)).toMatchObject({
    progress: { finished: true },
  });
  const kept = await unserved.query("select key from records where state <> 0 order by key");
  expect(kept.map(({ key }) => key)).toEqual([
    "after the job, by the right clock",
    "after the job, while it was ahead",
  ]);
});

test("a clock set ahead ends no job's delay, and an unknown one prolongs none", async () => {
  const unserved = await createUnserved();
  const pool = openStorePool(unserved);
  const { id: tenantId } = await createTenant(unserved);
  const job = { tenantId, namespace: undefined, work: { kind: "DELETE" }, delayMs: 26_000 } as const;
  const isTaken = async () =>
    (await pool.transaction((transaction) => takeRecordJob(transaction, 0, [], Date.now() + 1000))) !==
    undefined;
  await insertRecordJob(pool, job, Date.now() + 1000);
  await setClockAhead(unserved, 15);
  expect(await isTaken()).toBe(false);
  await unserved.query("delete from record_jobs");
  await insertRecordJob(pool, job);
  await setClockAhead(unserved, 0);
  expect(await isTaken()).toBe(true);
});

test("usage is counted in the hour of the previous clock", async () => {
  const { tenant } = await newCaller();
  await setClockAhead(database, 80 * 60);
  const counters = Object.fromEntries(USAGE_COUNTERS.map((name) => [name, 1])) as Record<
    UsageCounter,
    number
  >;
  const count = { tenantId: tenant.id, namespace: ORDER.namespace, counters, latency: [], retentions: [] };
  const flush = { replica: { id: randomUUID(), version: "test" }, seq: 1 };
  await addUsage(openStorePool(database), flush, [count], Date.now());
  const [row] = await database.query<{ hour_ms: number }>(
    "select date_part('epoch', hour) * 1000 as hour_ms from usage_hours where tenant_id = $1",
    [tenant.id],
  );
  expect(row?.hour_ms).toBeLessThanOrEqual(Date.now());
});

test("a namespace whose records have ended only by a clock that is ahead is not empty", async () => {
  const { client, tenant } = await newCaller();
  const { namespace } = ORDER;
  await setNamespacePolicy(database, tenant, namespace, { key_retention_s: RETENTION_S });
  await complete(client);
  await setClockAhead(database, 15);
  const admin = await connectAdminOf(tenant);
  await expect(admin.deleteNamespace({ name: namespace })).rejects.toMatchObject({
    code: Code.FailedPrecondition,
  });
  expect((await admin.deleteNamespace({ name: namespace, force: true })).job).toBeDefined();
});

test("a result whose retention has ended only by a clock that is ahead is replayed", async () => {
  const { client } = await newCaller(60);
  await complete(client, success("paid"));
  await setClockAhead(database, 5);
  const { result, resultExpired } = await lookUp(client);
  expect({ result, resultExpired }).toMatchObject({ result: success("paid"), resultExpired: false });
});

test("a key whose retention has ended by the previous clock is granted while the clock is ahead", async () => {
  const { tenant, client } = await newCaller();
  await complete(client);
  await ageRecords(database, tenant, RETENTION_S + 10);
  await setClockAhead(database, 15);
  await untilMovedBy(15);
  expect((await client.claim(ORDER)).outcome.case).toBe("claimed");
});

test("a clock that is set back does not make a held lease one that is taken over", async () => {
  const tenant = await createTenant(database, { reclaim_within_s: 18 * 60 });
  const client = connectClient(server, tenant.apiKey);
  await grant(client);
  await ageRecords(database, tenant, 20 * 60);
  await setClockAhead(database, -15);
  // Before and after the replica has seen the clock.
  expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  await untilMovedBy(-15);
  expect((await client.claim(ORDER)).outcome.case).toBe("ambiguous");
  expect((await lookUp(client)).state).toBe(Record_State.AMBIGUOUS);
  const admin = await connectAdminOf(tenant);
  const { records } = await admin.listRecords(OLDEST_FIRST);
  expect(records.map(({ key }) => key)).toEqual([ORDER.key]);
  const { ambiguous } = await admin.countAmbiguousRecords({});
  expect(ambiguous).toBe(1n);
  const takeOver = { ...ORDER, acceptAmbiguous: true };
  expect((await client.claim(takeOver)).outcome.case).toBe("claimed");
});

test("re-stamping forgets no record by a clock that is ahead", async () => {
  const { tenant, client } = await newCaller();
  await complete(client, success("paid"));
  await setClockAhead(database, 15);
  await untilMovedBy(15);
  const [was, becomes] = [RETENTION_S, RETENTION_S - 60].map((seconds) => ({
    keyRetentionS: seconds,
    resultRetentionS: seconds,
    failureRetentionS: seconds,
  })) as [never, never];
  const changes = { byNamespace: {}, others: { was, becomes } };
  const job = { tenantId: tenant.id, namespace: undefined, work: { kind: "RESTAMP", changes } } as const;
  await insertRecordJob(openStorePool(database), { ...job, delayMs: 0 }, Date.now());
  const finished =
    "select records_changed::int as changed from record_jobs where tenant_id = $1 and finished_at is not null";
  await expect.poll(() => database.query(finished, [tenant.id]), PATIENCE).toEqual([{ changed: 1 }]);
  await setClockAhead(database, 0);
  await untilMovedBy(0);
  expect((await client.claim(ORDER)).outcome.case).toBe("completed");
});

test("a clock just set ahead lets no claim take over a record that ends only by it", async () => {
  const { tenant, client } = await newCaller();
  await complete(client);
  await setClockAhead(database, 15);
  const command = claimCommand({ id: { ...ORDER, tenantId: tenant.id } });
  const takeOver = async (latestMs: number | undefined) => {
    const parameters = takeOverParameters([command], 0, latestMs);
    const rows = await openStorePool(database).run<TakenOverRow>(takeOverRecords, parameters);
    return rows.filter(isTakenOver).length;
  };
  expect([await takeOver(Date.now() + 1000), await takeOver(undefined)]).toEqual([0, 1]);
});

/** A database with a clock to set, and no server that deletes the rows of replicas which it takes for gone. */
async function createUnserved(): Promise<TestDatabase> {
  const unserved = await createDatabaseOfTest();
  await useSettableClock(unserved);
  return unserved;
}

test.each([
  [15, 15, 15],
  [0, 15, null],
  [15, 0, null],
  [15, 80 * 60, null],
  [-10, 15, null],
])("a heartbeat that last saw the clock move by %d min stores, at %d min, %s", async (seen, now, stored) => {
  const unserved = await createUnserved();
  const clock = { clockAheadMs: undefined, clockMovedMs: seen * 60_000, clockExpectedMs: Date.now() };
  const beat = { id: randomUUID(), version: "test", degraded: [], load: NO_LOAD, host: "test", ...clock };
  await setClockAhead(unserved, now);
  await beatReplicaRow(openStorePool(unserved), beat);
  expect(await unserved.query("select clock_moved_ms / 60000 as minutes from replicas")).toEqual([
    { minutes: stored },
  ]);
});

test("a heartbeat that sees the clock set stores it at once for new replicas", async () => {
  const unserved = await createUnserved();
  const pool = openStorePool(unserved);
  const databaseClock = createDatabaseClockWatch({ onMoved: () => {}, onAccepted: () => {} });
  const replica = { id: randomUUID(), version: "test" };
  const storedMinutes = async () => {
    await startHeartbeat(pool, databaseClock, replica);
    const [row] = await unserved.query<{ minutes: number }>(
      "select clock_moved_ms / 60000 as minutes from replicas where id = $1",
      [replica.id],
    );
    return row?.minutes;
  };
  expect(await storedMinutes()).toBe(0);
  await setClockAhead(unserved, 15);
  expect(await storedMinutes()).toBeCloseTo(15, 1);
  await setClockAhead(unserved, 0);
  expect(await storedMinutes()).toBe(0);
});

/** Starts a replica's heartbeat, which is not repeated. */
function startHeartbeat(
  pool: Pool,
  databaseClock: DatabaseClockWatch,
  replica = { id: randomUUID(), version: "test" },
): Promise<void> {
  const heartbeat = createHeartbeat({
    pool,
    replica,
    databaseClock,
    look: async () => true,
    tokenFloor: createTokenFloor(),
    commits: new CommitWatch(),
    onFailed(error) {
      throw error;
    },
    intervalMs: 3_600_000,
  });
  return heartbeat.start(() => ({ degraded: [], load: NO_LOAD }));
}

test("a replica that has not seen the clock set forward again does not confirm it to another", async () => {
  const unserved = await createUnserved();
  const pool = openStorePool(unserved);
  const [first, second] = [1, 2].map(() => {
    const watch = createDatabaseClockWatch({ onMoved: () => {}, onAccepted: () => {} });
    const replica = { id: randomUUID(), version: "test" };
    return { watch, beat: (by = pool) => startHeartbeat(by, watch, replica) };
  }) as [Beating, Beating];
  const confirming: Pool = {
    ...pool,
    async run(statement, parameters) {
      const rows = await pool.run<never>(statement, parameters);
      // The first one's row is stored, and it does not know yet what it has read.
      if (statement.name === "beat_replica") await second.beat();
      return rows;
    },
  };
  await first.beat();
  await setClockAhead(unserved, 80 * 60);
  await first.beat();
  // It knows the right clock from the first one alone.
  await second.beat();
  await setClockAhead(unserved, 0);
  await first.beat();
  await setClockAhead(unserved, 80 * 60);
  await first.beat(confirming);
  expect(second.watch.movedMs() / 3_600_000).toBeCloseTo(80, 1);
});

interface Beating {
  readonly watch: DatabaseClockWatch;
  readonly beat: (by?: Pool) => Promise<void>;
}

test("replicas that start at the same time do not confirm a wrong clock to each other", async () => {
  const unserved = await createUnserved();
  await setClockAhead(unserved, 30 * 24 * 60);
  const pool = openStorePool(unserved);
  const [first, second] = [1, 2].map(() =>
    createDatabaseClockWatch({ onMoved: () => {}, onAccepted: () => {} }),
  ) as [DatabaseClockWatch, DatabaseClockWatch];
  let beats = 0;
  const interrupted: Pool = {
    ...pool,
    async run(statement, parameters) {
      const rows = await pool.run<never>(statement, parameters);
      if (statement.name === "beat_replica" && ++beats === 1) {
        // The default of the column is Postgres' own clock.
        await unserved.query("update replicas set seen_at = seen_at + interval '30 days'");
        // The first one's row is stored, and it does not know yet what it has read.
        await startHeartbeat(pool, second);
      }
      return rows;
    },
  };
  await startHeartbeat(interrupted, first);
  for (const { movedMs } of [first, second]) expect(movedMs() / 60_000).toBeCloseTo(30 * 24 * 60, 0);
});

test("replicas that all start with the clock 30 days ahead delete and grant nothing", async () => {
  const own = await createDatabaseOfTest();
  await useSettableClock(own);
  const start = async () => {
    const env = { ONCEWARD_SWEEP_INTERVAL: "100ms" };
    return await startServerOfTest(own.url, env, { heartbeatMs: LOOK_MS, degradedLookMs: LOOK_MS });
  };
  const tenant = await createTenant(own);
  const before = await start();
  await complete(connectClient(before, tenant.apiKey), success("paid"));
  await before.stop();
  await setClockAhead(own, 30 * 24 * 60);
  const servers = await Promise.all([start(), start()]);
  const sweeps = async () =>
    Math.min(
      ...(await Promise.all(
        servers.map(
          async (each) =>
            (
              await readMetrics(each)
            ).get('onceward_store_duration_seconds_count{statement="find_due_records"}') ?? 0,
        ),
      )),
    );
  await expect.poll(sweeps, PATIENCE).toBeGreaterThan(2);
  const clients = servers.map((each) => connectClient(each, tenant.apiKey));
  for (const client of clients) await expect(client.claim(ORDER)).rejects.toThrow(/database's clock was set/);
  expect(await countRows(own, tenant)).toBe(1);
  await setClockAhead(own, 0);
  for (const client of clients) expect((await client.claim(ORDER)).outcome.case).toBe("completed");
});
