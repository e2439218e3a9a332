import { expect, test } from "vitest";
import { type BatchDone, type JobSelection, workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import { forgetPage, removePage } from "../../server/src/admin/records/forget-records.ts";
import type { PageOutcome, RecordPage } from "../../server/src/admin/records/record-page.ts";
import type { Pool, Runner } from "../../server/src/database/pool.ts";
import { openStorePool } from "../support/database/connections.ts";
import { CROWDED_TENANT, fillTables } from "../support/database/crowded-tables.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { blocksRead, type Explained, explainingPool } from "../support/database/plans.ts";

const PAGES = 50;
const ROWS_PER_PAGE = 40;

/** Changes a page of a job that changes all records. */
type WorkPage = (runner: Runner, page: RecordPage) => Promise<PageOutcome>;

async function createFilledDatabase(): Promise<TestDatabase> {
  const database = await createDatabaseOfTest();
  await database.query("alter table records set (autovacuum_enabled = false)");
  await fillTables(database, PAGES * ROWS_PER_PAGE);
  await database.query("vacuum analyze");
  return database;
}

test.each<[string, WorkPage]>([
  ["forgets", (runner, page) => forgetPage(runner, page, { courseMs: Date.now() + 60_000, shownMs: 0 })],
  ["deletes", removePage],
])("a job that %s records begins each page after the rows of the pages before", async (_, workPage) => {
  const database = await createFilledDatabase();
  const explained: Explained[] = [];
  // All pages in one transaction, so that no dead row can be removed from the index meanwhile.
  await explainingPool(openStorePool(database), explained).transaction(async (transaction) => {
    let afterKey = "";
    for (let page = 0; page < PAGES; page++) {
      const range = { tenantId: CROWDED_TENANT, namespace: "charges", afterKey, limit: ROWS_PER_PAGE };
      const { examined, lastKey = "" } = await workPage(transaction, range);
      expect(examined).toBe(ROWS_PER_PAGE);
      afterKey = lastKey;
    }
  });
  const [first = 0, , , last = 0] = explained.map(({ plan }) => blocksRead(plan));
  expect(last).toBeLessThan(2 * first);
});

test("a tenant's deletion begins each batch after the previous rows, in each table", async () => {
  const database = await createFilledDatabase();
  const explained: Explained[] = [];
  await database.query("truncate records, record_jobs");
  await database.query("update tenants set deleted_at = now() where id = $1", [CROWDED_TENANT]);
  await database.query(
    "insert into record_jobs (tenant_id, kind, terms, starts_at) values ($1, 'DELETE', '{}', now())",
    [CROWDED_TENANT],
  );
  const selection: JobSelection = {
    afterTenantId: 0,
    skippedJobIds: [],
    maxRowsOf: () => ROWS_PER_PAGE,
    onTaken: () => {},
  };
  await explainingPool(openStorePool(database), explained).transaction(async (transaction) => {
    const pool: Pick<Pool, "transaction"> = { transaction: (work) => work(transaction) };
    let done: BatchDone | undefined;
    do done = await workBatch(pool, selection);
    while (done?.progress.finished === false);
    expect(done?.progress).toMatchObject({ finished: true });
  });
  expect(await database.query("select from tenants where id = $1", [CROWDED_TENANT])).toEqual([]);
  const plans = Map.groupBy(explained, ({ statement }) => statement);
  const blocks = new Map([...plans].map(([name, runs]) => [name, runs.map(({ plan }) => blocksRead(plan))]));
  const tables = [...blocks].filter(
    ([name]) => name.startsWith("remove_tenant_") && !name.endsWith("_sessions"),
  );
  expect(tables).toHaveLength(9);
  const rereading = tables.filter(([, [first = 0, , , last = Number.NaN]]) => !(last < 2 * first + 10));
  expect(rereading).toEqual([]);
});
