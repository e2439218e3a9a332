import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOperator } from "@onceward/client/admin";
import pg from "pg";
import { inject } from "vitest";
import { openPool } from "../../../server/src/database/pool.ts";
import { plantTraffic } from "../../lab/traffic/run.ts";
import { type OpenDatabase, openDatabase, TEMPLATE_DATABASE } from "../database/database.ts";
import { startTestServer, TEST_PEPPER } from "../servers/server.ts";
import { createApiKey } from "../servers/tenants.ts";
import { writesPictures } from "./screenshots.ts";

/** The database with the traffic, of which each test file gets a copy. */
export const SEEDED_DATABASE = "onceward_seeded";

/**
 * The least that has a week's redriven events, and suspicions about keys. With a ninth day, a retention of two days has been observed
 * for a week from midnight on: a test before and after it would see two verdicts.
 */
const TRAFFIC = { seed: 24, days: 8, operations: 400, liveMs: 1000 };
/** What README's pictures show: evidence of four weeks. */
const PICTURED_TRAFFIC = { ...TRAFFIC, days: 28 };
const LIMIT_MS = 300_000;

/** Who can sign in to a server on the database with the traffic. */
export interface Seed {
  /** The name of the tenant of `npm run lab -- traffic`, in whose namespace `webhooks` the retention is too short. */
  readonly tenant: string;
  /** A completed record of the tenant. */
  readonly record: { readonly namespace: string; readonly key: string };
  /** A finished job of the tenant. */
  readonly jobId: string;
  readonly adminKey: string;
  readonly callerKey: string;
  readonly operatorKey: string;
}

/** Returns the seed of this run. */
export function seedOfRun(): Seed {
  return inject("seed");
}

/** Creates the database and plants traffic in it, by the code of `npm run lab -- traffic`. */
export async function plantSeed(postgresUrl: string): Promise<Seed> {
  await copyTemplate(postgresUrl);
  const url = new URL(postgresUrl);
  url.pathname = `/${SEEDED_DATABASE}`;
  await using ended = new AsyncDisposableStack();
  const database = openDatabase(url.href);
  ended.defer(() => database.close());
  const server = await startTestServer(url.href);
  ended.defer(() => server.stop());
  const operatorKey = await createApiKey(database, { role: "OPERATOR" });
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const operator = createOperator({ address, apiKey: operatorKey });
  ended.defer(() => operator.close());
  const pool = openPool({ databaseUrl: url.href, size: 2, throughPgBouncer: false });
  ended.defer(() => pool.close());
  const dataDir = await mkdtemp(join(tmpdir(), "ow-seed-"));
  ended.defer(() => rm(dataDir, { recursive: true, force: true }));
  const dev = {
    ...{ address, operator, pool, dataDir, databaseUrl: url.href, pepper: TEST_PEPPER },
    [Symbol.asyncDispose]: async () => {},
  };
  const planted = await plantTraffic(
    dev,
    writesPictures() ? PICTURED_TRAFFIC : TRAFFIC,
    () => {},
    AbortSignal.timeout(LIMIT_MS),
  );
  const [row] = await database.query<{ id: number }>("select id from tenants where name = $1", [
    planted.tenant,
  ]);
  if (row === undefined) throw new Error("the traffic has no tenant");
  return {
    tenant: planted.tenant,
    record: await completedRecord(database, row.id),
    jobId: await plantJob(database, row.id),
    adminKey: (await readFile(planted.adminKeyFile, "utf8")).trim(),
    callerKey: await createApiKey(database, { role: "CALLER", tenantId: row.id }),
    operatorKey,
  };
}

async function completedRecord(database: OpenDatabase, tenantId: number): Promise<Seed["record"]> {
  const [record] = await database.query<Seed["record"]>(
    `select namespace, key from records where tenant_id = $1 and state = 2 and expires_at > now() + interval '1 hour'
      order by namespace, key limit 1`,
    [tenantId],
  );
  if (record === undefined) throw new Error("the traffic has no completed record");
  return record;
}

/** Inserts a job that was done a day ago, and returns its id. */
export async function plantJob(database: OpenDatabase, tenantId: number): Promise<string> {
  const [job] = await database.query<{ id: string }>(
    `insert into record_jobs (tenant_id, namespace, kind, terms, created_at, starts_at, finished_at, records_examined,
                              records_changed, records_forgotten)
     select $1, 'archive', 'FORGET', '{}', at, at, at + interval '1 minute', 1200, 1200, 1200
       from (select now() - interval '1 day' as at) day
     returning id::text`,
    [tenantId],
  );
  if (job === undefined) throw new Error("no job was inserted");
  return job.id;
}

async function copyTemplate(postgresUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query(`create database ${SEEDED_DATABASE} template ${TEMPLATE_DATABASE}`);
  } finally {
    await client.end();
  }
}
