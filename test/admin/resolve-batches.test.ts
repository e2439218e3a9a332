import { expect, onTestFinished, test } from "vitest";
import { findRecordJob } from "../../server/src/admin/jobs/get-record-job.ts";
import { writeJobResolution } from "../../server/src/admin/jobs/job-resolution.ts";
import { insertRecordJob } from "../../server/src/admin/jobs/record-jobs.ts";
import { workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import { createJobWorker } from "../../server/src/admin/jobs/worker.ts";
import type { Resolution } from "../../server/src/admin/records/resolution.ts";
import type { Pool, Statement } from "../../server/src/database/pool.ts";
import { UNCHECKED_CLOCK } from "../../server/src/domain/database-clock.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import { PLAIN_VALUES } from "../../server/src/records/engine/record-values.ts";
import { recordName } from "../../server/src/records/record.ts";
import { createRecordStore } from "../../server/src/records/record-store.ts";
import { digestResult } from "../../server/src/records/result-digest.ts";
import { createLog } from "../../server/src/telemetry/log.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import { claimCommand, DONE } from "../support/calls/domain.ts";
import { endLeases } from "../support/calls/records.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { anyTurn } from "../support/database/jobs.ts";
import { createTenant } from "../support/servers/tenants.ts";

const NO_DEADLINE = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const STATES = ["forgotten", "unsettled", "completed", "released"] as const;
const PATIENCE = { timeout: 60_000, interval: 50 };

/** A database without a server, with a tenant's ambiguous records and a job that resolves them. */
async function withJob(count: number, resolution: Resolution = { kind: "release" }) {
  const database = await createDatabaseOfTest();
  const tenant = await createTenant(database);
  const pool = openStorePool(database);
  const records = createRecordStore(pool, UNLIMITED);
  const idOf = (n: number) => ({ tenantId: tenant.id, namespace: "charges", key: `order-${1000 + n}` });
  const claim = async (from: number, until: number) => {
    const ids = Array.from({ length: until - from }, (_, index) => idOf(from + index));
    const commands = ids.map((id) => claimCommand({ id, reclaimWithinS: 0, owner: "dead" }));
    await records.claim(commands, NO_DEADLINE);
    await endLeases(database, tenant);
  };
  await claim(0, count);
  const audit = {
    tenantName: tenant.name,
    actor: "key",
    requestId: "1",
    target: "namespace charges",
    reason: "why",
  };
  const which = { leaseExpiredBeforeMs: Date.now() + 60_000, owner: "", checkpoint: "" };
  const { id } = await insertRecordJob(pool, {
    tenantId: tenant.id,
    namespace: "charges",
    work: { kind: "RESOLVE", which, matching: count, audit },
    resolution: writeJobResolution(resolution, tenant.id, PLAIN_VALUES),
    delayMs: 0,
  });
  const job = async () => findRecordJob(pool, tenant.id, id);
  const states = async () => {
    const rows = await database.query<{ state: 0 | 1 | 2 | 3; count: number }>(
      "select state, count(*)::int as count from records group by state",
    );
    return Object.fromEntries(rows.map(({ state, count }) => [STATES[state], count]));
  };
  return { database, tenant, pool, records, idOf, claim, job, states };
}

test("a job resolves no record until the database's clock is trusted, then all of them", async () => {
  const { pool, job, states } = await withJob(3);
  const moved = { latestMs: () => Date.now(), hasMoved: () => true };
  await expect(workBatch(pool, anyTurn(10), PLAIN_VALUES, moved)).rejects.toThrow("clock was set");
  expect(await job()).toMatchObject({ recordsExamined: 0 });
  while ((await workBatch(pool, anyTurn(10)))?.progress.finished === false);
  expect(await states()).toEqual({ released: 3 });
});

/** Returns a pool that calls `before` before each statement of a transaction. */
function observed(
  pool: Pool,
  before: (statement: Statement, parameters: readonly unknown[]) => Promise<void>,
): Pick<Pool, "transaction"> {
  return {
    transaction: (work) =>
      pool.transaction((transaction) =>
        work({
          async run(statement, parameters) {
            await before(statement, parameters);
            return transaction.run(statement, parameters);
          },
        }),
      ),
  };
}

test("a job reads its ambiguous records, and none of the others", async () => {
  const { tenant, pool, records, job } = await withJob(3);
  const ids = Array.from({ length: 6000 }, (_, n) => ({
    tenantId: tenant.id,
    namespace: "charges",
    key: `a-${n}`,
  }));
  await records.claim(
    ids.map((id) => claimCommand({ id })),
    NO_DEADLINE,
  );
  expect(await workBatch(pool, anyTurn(500))).toMatchObject({ progress: { changed: 3, finished: true } });
  expect(await job()).toMatchObject({ state: "DONE", recordsExamined: 3 });
});

test("a job continues after ambiguous records that do not match", async () => {
  const { database, pool, states } = await withJob(5);
  await database.query("update records set owner = 'other' where key between 'order-1001' and 'order-1002'");
  await database.query(`update record_jobs set terms = jsonb_set(terms, '{which,owner}', '"dead"')`);
  const changed: number[] = [];
  for (
    let done = await workBatch(pool, anyTurn(2));
    done !== undefined;
    done = await workBatch(pool, anyTurn(2))
  )
    changed.push(done.progress.changed);
  expect(changed).toEqual([1, 1, 1]);
  expect(await states()).toEqual({ unsettled: 2, released: 3 });
});

test("batches resolve at most 100 records each, and tell which", async () => {
  const { pool, idOf, job, states } = await withJob(250);
  const settled: string[][] = [];
  for (let done = await workBatch(pool, anyTurn(500)); done !== undefined; ) {
    settled.push(done.settled.map(recordName));
    done = await workBatch(pool, anyTurn(500));
  }
  expect(settled.map(({ length }) => length)).toEqual([100, 100, 50]);
  expect(settled.flat()).toEqual(Array.from({ length: 250 }, (_, n) => recordName(idOf(n))));
  expect(await states()).toEqual({ released: 250 });
  expect(await job()).toMatchObject({ state: "DONE", recordsChanged: 250 });
});

test("batches of large results have fewer records, and one that may have only one has one", async () => {
  // Half of it is metadata, more than a call may store.
  const metadataJson = JSON.stringify({ a: "x".repeat(512 * 1024 - 8) });
  const result = { ...DONE, payload: Buffer.alloc(512 * 1024), metadataJson };
  const { pool, states } = await withJob(6, { kind: "complete", result, resultDigest: digestResult(result) });
  await workBatch(pool, anyTurn(500));
  expect(await states()).toEqual({ unsettled: 2, completed: 4 });
  await workBatch(pool, anyTurn(1));
  expect(await states()).toEqual({ unsettled: 1, completed: 5 });
});

test("a record whose holder completes it between the search and the change is left alone", async () => {
  const { pool, records, idOf, job, states } = await withJob(3);
  const [record] = await records.read([idOf(1)], NO_DEADLINE);
  const { fencingToken } = record as { fencingToken: bigint };
  const meddled = observed(pool, async ({ name }, [, , key]) => {
    if (name !== "lock_record" || key !== idOf(1).key) return;
    const complete = { result: DONE, resultDigest: digestResult(DONE), keyRetentionS: undefined };
    const [completed] = await records.complete([{ id: idOf(1), fencingToken, ...complete }], NO_DEADLINE);
    expect(completed).toMatchObject({ kind: "completed", alreadyCompleted: false });
  });
  const done = await workBatch(meddled, anyTurn(500));
  expect(done?.progress).toMatchObject({ examined: 3, changed: 2, finished: true });
  expect(await states()).toEqual({ completed: 1, released: 2 });
  expect(await job()).toMatchObject({ state: "DONE", recordsChanged: 2 });
});

test("a record that another claim took over, or whose lease its holder extended, is left alone", async () => {
  const { pool, records, idOf, states } = await withJob(4);
  const [record] = await records.read([idOf(1)], NO_DEADLINE);
  const { fencingToken } = record as { fencingToken: bigint };
  const meddled = observed(pool, async ({ name }, [, , key]) => {
    if (name !== "lock_record") return;
    if (key === idOf(1).key) {
      const extension = { id: idOf(1), fencingToken, leaseMs: 60_000, checkpoint: undefined, begin: false };
      await records.extendLease([extension], NO_DEADLINE);
    }
    if (key === idOf(2).key) {
      await records.claim([claimCommand({ id: idOf(2), acceptAmbiguous: true })], NO_DEADLINE);
    }
  });
  const done = await workBatch(meddled, anyTurn(500));
  expect(done?.progress).toMatchObject({ examined: 4, changed: 2 });
  expect(await states()).toEqual({ unsettled: 2, released: 2 });
});

test("records whose leases expired after the job was created are left alone", async () => {
  const { database, pool, claim, states } = await withJob(2);
  await database.query(
    `update record_jobs set terms = jsonb_set(terms, '{which,leaseExpiredBeforeMs}',
       to_jsonb((select date_part('epoch', max(lease_expires_at)) * 1000 + 1 from records)))`,
  );
  const age =
    "update records set lease_expires_at = coalesce(lease_expires_at, null) - interval '1 hour' where key < 'order-1002'";
  await database.query(age);
  await claim(2, 5);
  await database.query(age);
  await workBatch(pool, anyTurn(500));
  expect(await states()).toEqual({ unsettled: 3, released: 2 });
});

test("a job whose batches fail changes nothing, is retried, and resolves each record once", async () => {
  const { database, pool, tenant, job, states } = await withJob(120, { kind: "forget" });
  await database.query(
    "create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$",
  );
  await database.query(
    `create trigger refuse before update on records for each row
       when (old.key = 'order-1050') execute function refuse()`,
  );
  const failures: unknown[] = [];
  const settled: string[] = [];
  const worker = createJobWorker({
    databaseClock: UNCHECKED_CLOCK,
    pool,
    encryption: PLAIN_VALUES,
    metrics: createMetrics("0.0.0"),
    log: createLog("silent", { write: () => true }),
    onFailed: (error) => failures.push(error),
    onSettled: (name) => settled.push(name),
    intervalMs: 100,
  });
  worker.start();
  onTestFinished(() => worker.stop());
  await expect.poll(() => failures.length, PATIENCE).toBeGreaterThan(1);
  expect(await states()).toEqual({ unsettled: 120 });
  expect(settled).toEqual([]);
  await database.query("drop function refuse cascade");
  await expect.poll(async () => (await job())?.state, PATIENCE).toBe("DONE");
  expect(await states()).toEqual({ forgotten: 120 });
  expect(await job()).toMatchObject({ recordsChanged: 120, recordsForgotten: 120 });
  await expect.poll(() => new Set(settled).size, PATIENCE).toBe(120);
  expect(settled).toHaveLength(120);
  const ends = await database.query("select after from audit_events where tenant_id = $1", [tenant.id]);
  expect(ends).toEqual([
    { after: { recordJob: expect.any(String), recordsChanged: 120, recordsLeftAlone: 0 } },
  ]);
});
