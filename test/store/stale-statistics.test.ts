import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPool, type Pool } from "../../server/src/store/pool.ts";
import { sweepBatch } from "../../server/src/store/sweep-records.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";
import { type Explained, explainingPool, rowsProcessed } from "../helpers/plans.ts";

/** In the range of each statement. */
const ROWS = 20_000;
const BATCH_ROWS = 1000;
/** A statement may look at every row of its range in a few nodes of its plan; a quadratic one processes a hundred times more. */
const MAX_ROWS_PROCESSED = 10 * ROWS;

/** When Postgres last looked at the tables, as its statistics say. */
const STATISTICS: Readonly<Record<string, (database: TestDatabase) => Promise<void>>> = {
  "that were never gathered": fill,
  async "of empty tables"(database) {
    await database.query("vacuum analyze");
    await fill(database);
  },
  async "from before the rows were due"(database) {
    await fill(database);
    await database.query("update records set sweep_at = sweep_at + interval '1 day'");
    await database.query("vacuum analyze");
    await database.query("update records set sweep_at = sweep_at - interval '1 day'");
  },
  async "of tables that were all but emptied"(database) {
    await fill(database);
    await database.query("vacuum analyze");
    await database.query("update pg_class set reltuples = 1 where relnamespace = 'public'::regnamespace");
  },
};

async function fill(database: TestDatabase): Promise<void> {
  await database.query(FILL_RECORDS);
}

/** One in ten of them ended, and all are due at one moment, as when they were put off or re-stamped together. */
const FILL_RECORDS = `
insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
  accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
  claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
select 1, 'charges', 'key-' || n, 1, 1, 1, false, false, 30000, 60, 60, 60, now(), now(),
       now() - interval '1 hour',
       now() + case when n % 10 = 0 then interval '-1 hour' else interval '1 hour' end,
       now() - interval '1 hour', '', ''
  from generate_series(1, ${ROWS}) n`;

describe.each(Object.keys(STATISTICS))("with statistics %s", (age) => {
  let database: TestDatabase;
  let pool: Pool;
  const explained: Explained[] = [];
  let explaining: Pool;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query("alter table records set (autovacuum_enabled = false)");
    await STATISTICS[age]?.(database);
    pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
    explaining = explainingPool(pool, explained);
  });

  afterAll(async () => {
    await pool?.close();
    await database?.drop();
  });

  test("the sweep finds its rows by an index, one after another", async () => {
    await sweepBatch(explaining, BATCH_ROWS);
    for (const { statement, plan } of explained) {
      expect({ statement, rows: rowsProcessed(plan) }).toSatisfy(({ rows }) => rows <= MAX_ROWS_PROCESSED);
    }
    expect(explained.map(({ statement }) => statement)).toContain("put_off_records");
  });
});
