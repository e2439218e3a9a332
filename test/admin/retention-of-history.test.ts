import { expect, onTestFinished, test } from "vitest";
import { createPruners } from "../../server/src/background/pruner.ts";
import { pruneRows } from "../../server/src/database/prune.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { createTenant } from "../support/servers/tenants.ts";

const DAY_MS = 86_400_000;

/** Writes an audit event, an hour of usage and a finished job of so many days ago each. */
async function writeHistory(database: TestDatabase, daysAgo: readonly number[]): Promise<void> {
  const { id } = await createTenant(database);
  await database.query(
    `with ages as (select now() - days * interval '1 day' as at from unnest($2::int[]) days), events as (
       insert into audit_events (at, tenant, tenant_id, actor, action, target, outcome, request_id)
       select at, 't', $1, 'a', 'UpdateTenant', 't', 'DONE', 'r' from ages
     ), jobs as (
       insert into record_jobs (tenant_id, kind, terms, starts_at, finished_at)
       select $1, 'FORGET', '{}', at, at from ages
     )
     insert into usage_hours (tenant_id, hour, namespace, repeat_lateness)
     select $1, date_trunc('hour', at), 'charges', '{}' from ages`,
    [id, daysAgo],
  );
}

const INSTANTS = { audit_events: "at", usage_hours: "hour", record_jobs: "finished_at" } as const;

/** How many days ago the rows of a table were written, the oldest first. */
async function agesOf(database: TestDatabase, table: keyof typeof INSTANTS): Promise<number[]> {
  const rows = await database.query<{ days: number }>(
    `select round(date_part('epoch', now() - ${INSTANTS[table]}) / 86400)::int as days from ${table} order by 1 desc`,
  );
  return rows.map(({ days }) => days);
}

test.each(["audit_events", "usage_hours", "record_jobs"] as const)(
  "%s are pruned after their retention, oldest first, a bounded number at once",
  async (table) => {
    const database = await createDatabaseOfTest();
    await writeHistory(database, [500, 450, 420, 40, 1]);
    const pool = openStorePool(database);
    expect(await pruneRows(pool, table, 400 * DAY_MS, 2)).toBe(2);
    expect(await agesOf(database, table)).toEqual([420, 40, 1]);
    expect(await pruneRows(pool, table, 400 * DAY_MS, 2)).toBe(1);
    expect(await pruneRows(pool, table, 400 * DAY_MS, 2)).toBe(0);
    expect(await agesOf(database, table)).toEqual([40, 1]);
  },
);

test.each(["audit_events", "usage_hours", "record_jobs"] as const)(
  "%s are not pruned by a clock that is ahead",
  async (table) => {
    const database = await createDatabaseOfTest();
    await writeHistory(database, [500, 450, 420]);
    // To the statement, a clock that is ahead of a current bound is the same as the right clock with a bound in the past.
    const boundMs = Date.now() - 60 * DAY_MS;
    expect(await pruneRows(openStorePool(database), table, 400 * DAY_MS, 10, boundMs)).toBe(1);
    expect(await agesOf(database, table)).toEqual([450, 420]);
  },
);

test("rows that one replica is pruning are left to it, and another takes the next ones", async () => {
  const database = await createDatabaseOfTest();
  await writeHistory(database, [500, 450, 420]);
  const pool = openStorePool(database);
  await pool.transaction(async (transaction) => {
    expect(await pruneRows(transaction, "audit_events", 400 * DAY_MS, 2)).toBe(2);
    expect(await pruneRows(pool, "audit_events", 400 * DAY_MS, 2)).toBe(1);
  });
  expect(await agesOf(database, "audit_events")).toEqual([]);
});

test("audit events younger than 30 days are kept with every retention", async () => {
  const database = await createDatabaseOfTest();
  await writeHistory(database, [31, 29, 1]);
  expect(await pruneRows(openStorePool(database), "audit_events", 0, 100)).toBe(1);
  expect(await agesOf(database, "audit_events")).toEqual([29, 1]);
  await expect(database.query("delete from audit_events")).rejects.toThrow("audit events are final");
});

/** Starts pruning as a server does, but every 10 ms; returns the names of the tasks that failed, one for each failure. */
function startPruners(database: TestDatabase, latestMs = Date.now()): readonly string[] {
  const failed: string[] = [];
  const pruners = createPruners({
    pool: openStorePool(database),
    databaseClock: { latestMs: () => latestMs },
    metrics: createMetrics("0.0.0"),
    auditRetentionMs: 400 * DAY_MS,
    onFailed: (task) => () => failed.push(task),
    intervalMs: 10,
  });
  onTestFinished(async () => {
    await Promise.all(pruners.map((pruner) => pruner.stop()));
  });
  for (const pruner of pruners) pruner.start();
  return failed;
}

test("finished jobs are kept 90 days, usage hours 400, by the database's clock", async () => {
  const database = await createDatabaseOfTest();
  // The clock is 60 days ahead of its course.
  await writeHistory(database, [461, 459, 151, 149]);
  expect(startPruners(database, Date.now() - 60 * DAY_MS)).toEqual([]);
  await expect.poll(() => agesOf(database, "record_jobs")).toEqual([149]);
  await expect.poll(() => agesOf(database, "usage_hours")).toEqual([459, 151, 149]);
});

test("pruning continues after failures, and one table's failure does not affect others", async () => {
  const database = await createDatabaseOfTest();
  await writeHistory(database, [500]);
  await database.query("alter function prune_audit_events rename to prune_elsewhere");
  const failed = startPruners(database);
  await expect.poll(() => failed.length).toBeGreaterThan(2);
  await expect.poll(() => agesOf(database, "usage_hours")).toEqual([]);
  expect(new Set(failed)).toEqual(new Set(["prune_audit_events"]));
  await database.query("alter function prune_elsewhere rename to prune_audit_events");
  await expect.poll(() => agesOf(database, "audit_events")).toEqual([]);
});
