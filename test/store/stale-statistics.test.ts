import { readdir, readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  MAX_EXAMINED_FOR_LIFE,
  mayHaveLiveRecords,
} from "../../server/src/admin/namespaces/delete-namespace.ts";
import { readUsage } from "../../server/src/admin/usage/get-usage.ts";
import { openPool, type Pool } from "../../server/src/database/pool.ts";
import { CROWDED_TENANT, fillTables } from "../support/database/crowded-tables.ts";
import { isOtherPostgres, type TestDatabase } from "../support/database/database.ts";
import { type Explained, explainingPool, rowsProcessed } from "../support/database/plans.ts";
import { ADMINISTRATION_WORK } from "./stale-statistics/administration.ts";
import { CITUS_WORK } from "./stale-statistics/citus.ts";
import { CONSOLE_WORK } from "./stale-statistics/console.ts";
import { createUnanalyzedDatabase, STATISTICS } from "./stale-statistics/databases.ts";
import { DOCTOR_WORK } from "./stale-statistics/doctor.ts";
import { ENCRYPTION_WORK } from "./stale-statistics/encryption.ts";
import { INSIGHT_WORK } from "./stale-statistics/insight.ts";
import { INSTALLATION_WORK } from "./stale-statistics/installation.ts";
import { AMBIGUOUS, JOBS_WORK } from "./stale-statistics/jobs.ts";
import { KEY_HISTORY_WORK } from "./stale-statistics/key-history.ts";
import { MOVING_WORK } from "./stale-statistics/moving.ts";
import { RECORDS_WORK } from "./stale-statistics/records.ts";
import { BATCH_ROWS, ROWS } from "./stale-statistics/rows.ts";
import { TENANTS_WORK } from "./stale-statistics/tenants.ts";
import { USAGE_OF_NAMESPACE, USAGE_WORK } from "./stale-statistics/usage.ts";

/** What each part of the server does in the database. Calls come first: their results are what is encrypted. */
const AREAS = [
  RECORDS_WORK,
  ADMINISTRATION_WORK,
  CONSOLE_WORK,
  DOCTOR_WORK,
  ENCRYPTION_WORK,
  INSIGHT_WORK,
  INSTALLATION_WORK,
  JOBS_WORK,
  KEY_HISTORY_WORK,
  MOVING_WORK,
  TENANTS_WORK,
  USAGE_WORK,
  CITUS_WORK,
];

/** Filled once, and copied for each kind of statistics. */
let filled: TestDatabase;

beforeAll(async () => {
  filled = await createUnanalyzedDatabase();
  await fillTables(filled, ROWS);
  // Postgres copies no database that has connections.
  await filled.close();
});

afterAll(() => filled?.drop());

const ENDED_RECORDS = `
  insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
    accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
    claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
  select tenant_id, 'ended', key, fencing_token, state, attempt, holds_on_lease_expiry,
    accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
    claimed_at, lease_expires_at, now() - interval '1 second', now() + interval '1 day', claim_id, owner
    from records where tenant_id = 1 and namespace = 'charges' limit $1`;

const explainedAnywhere = new Set<string>();

/** On other Postgres than the packaged one, with what leads a planner astray most easily. */
const MISLEADING = ["of tables that were nearly emptied", "that were never gathered"];
const TESTED_STATISTICS = isOtherPostgres() ? MISLEADING : Object.keys(STATISTICS);

describe.each(TESTED_STATISTICS)("with statistics %s", (age) => {
  let database: TestDatabase;
  let pool: Pool;

  beforeAll(async () => {
    database = (await STATISTICS[age]?.(new URL(filled.url).pathname.slice(1))) as TestDatabase;
    // One connection, so that nothing runs concurrently.
    pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
  });

  afterAll(async () => {
    await pool?.close();
    await database?.drop();
  });

  async function explain(work: (pool: Pool) => Promise<unknown>): Promise<readonly Explained[]> {
    const explained: Explained[] = [];
    await work(explainingPool(pool, explained));
    for (const { statement } of explained) explainedAnywhere.add(statement);
    expect(explained).not.toEqual([]);
    return explained;
  }

  /** Returns the statements that process more than `maxRows` rows. */
  function greedy(explained: readonly Explained[], maxRows: number) {
    return explained
      .map(({ statement, plan }) => ({ statement, rows: rowsProcessed(plan) }))
      .filter(({ rows }) => rows > maxRows);
  }

  test.each(AREAS.flatMap(({ byKeys = {} }) => Object.entries(byKeys)))(
    "to %s reads no whole table",
    async (_, work) => {
      expect(greedy(await explain(work), ROWS)).toEqual([]);
    },
  );

  test("a live record is sought among a bounded number of ended ones", async () => {
    await database.query(ENDED_RECORDS, [2 * MAX_EXAMINED_FOR_LIFE]);
    onTestFinished(async () => {
      await database.query("delete from records where namespace = 'ended'");
    });
    const explained = await explain(async (pool) => {
      expect(await mayHaveLiveRecords(pool, CROWDED_TENANT, "ended")).toBe(true);
      expect(await mayHaveLiveRecords(pool, CROWDED_TENANT, "none")).toBe(false);
    });
    // The rows of the index, of the limit and of the materialized list.
    expect(greedy(explained, 3 * MAX_EXAMINED_FOR_LIFE + 1)).toEqual([]);
  });

  test("ambiguous records are found in the order of their index", async () => {
    for (const work of Object.values(AMBIGUOUS)) {
      const [explained] = await explain(work);
      const plan = explained?.plan ?? [];
      const reads = plan.flatMap((node, n) =>
        node["Relation Name"] === "records" ? [plan[n - 1], node] : [],
      );
      // Without a sort between them, the limit ends the scan.
      expect(reads).toMatchObject([
        { "Node Type": "Limit" },
        { "Node Type": "Index Scan", "Index Name": "records_ambiguous_from" },
      ]);
    }
  });

  test("to read usage of a namespace reads no row of the others", async () => {
    const explained = await explain((pool) => readUsage(pool, USAGE_OF_NAMESPACE));
    expect(greedy(explained, BATCH_ROWS)).toEqual([]);
  });

  test.each(AREAS.flatMap(({ overARange = {} }) => Object.entries(overARange)))(
    "to %s reads its range at most a few times",
    async (_, work) => {
      expect(greedy(await explain(work), 10 * ROWS)).toEqual([]);
    },
  );
});

test("every statement of the store on more than one row is tested", async () => {
  const folder = new URL("../../server/src/", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => /(?<!\.test)\.ts$/.test(file));
  const sources = await Promise.all(files.map((file) => readFile(new URL(file, folder), "utf8")));
  const names = sources.flatMap((source) =>
    [...source.matchAll(/name: "(\w+)",\s+text\b/g)].map(([, name]) => name),
  );
  const others = AREAS.flatMap(({ onOneRow = [], elsewhere = [] }) => [...onOneRow, ...elsewhere]);
  const tested = new Set([...explainedAnywhere, ...others]);
  expect(names.length).toBeGreaterThan(50);
  expect(names.filter((name) => !tested.has(name ?? ""))).toEqual([]);
  expect(others.filter((name) => !names.includes(name))).toEqual([]);
});
