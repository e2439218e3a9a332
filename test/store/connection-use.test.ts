import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import {
  type BoundStatement,
  type OpenedPool,
  openPool,
  type PoolOptions,
  type Runner,
} from "../../server/src/database/pool.ts";
import {
  POLICY_SETTLES_MS,
  RESEND_WITHIN_MS,
  USE_TIMEOUT_MS,
} from "../../server/src/domain/statement-times.ts";
import type { RecordLoss } from "../../server/src/records/late-keys.ts";
import { useDatabase } from "../support/database/use-database.ts";

const database = useDatabase();

beforeAll(async () => {
  await database.query("create table written (by text primary key)");
});

function open(
  onConnected: NonNullable<PoolOptions["onConnected"]>,
  options: Partial<PoolOptions> = {},
): OpenedPool {
  const pool = openPool({
    databaseUrl: database.url,
    size: 1,
    throughPgBouncer: false,
    onConnected,
    ...options,
  });
  onTestFinished(() => pool.close());
  return pool;
}

const write = { name: "write", text: "insert into written values ($1::text)" };
const sleep = { name: "sleep", text: "select pg_sleep(4.8)" };

/** Each statement stays within the server's limit of one; the round trip takes longer. */
function slowRoundTrip(by: string): readonly BoundStatement[] {
  const short = { name: "short sleep", text: "select pg_sleep(0.4)" };
  return [
    { statement: sleep, parameters: [], operations: 1 },
    { statement: short, parameters: [], operations: 1 },
    { statement: write, parameters: [by], operations: 1 },
  ];
}

/** Resolves once no other session of the database runs anything or holds a transaction open. */
async function untilIdle(): Promise<void> {
  const others = `select from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`;
  const isIdle = async () => (await database.query(others)).length === 0;
  await vi.waitUntil(isIdle, { timeout: 60_000, interval: 20 });
}

test("a slow database's statement has no effect after the time in which a policy is used", async () => {
  // Each statement of the look stays within its own limit; together they take longer than a use of the connection may.
  let looks = 0;
  const pool = open(async (connection) => {
    if (looks++ > 0) return true;
    await connection.run(sleep, []);
    await connection.run(sleep, []);
    return true;
  });
  const sleepFirst = async (connection: Runner) => {
    await connection.run(sleep, []);
    return true;
  };
  const slow = open(sleepFirst);
  const unavailable = { reason: "DATABASE_UNAVAILABLE" };
  // One round trip, as to the shards of a node. Postgres has all of it when the client closes the connection of the second.
  const together = open(async () => true, { onShards: true });
  const left = open(sleepFirst, { onShards: true });
  await Promise.all([
    expect(pool.run(write, ["late"])).rejects.toMatchObject(unavailable),
    // In progress when the time is up: its connection is closed.
    expect(slow.run(sleep, [])).rejects.toMatchObject(unavailable),
    expect(together.runTogether(slowRoundTrip("together"))).rejects.toMatchObject(unavailable),
    expect(left.runTogether(slowRoundTrip("left"))).rejects.toMatchObject(unavailable),
  ]);
  await untilIdle();
  const written = "select by from written where by in ('late', 'together', 'left')";
  expect(await database.query(written)).toEqual([]);
  // The pool opens a new connection.
  await pool.run(write, ["next"]);
  expect(await database.query("select from written where by = 'next'")).toHaveLength(1);
}, 60_000);

test("a policy settles later than the last effect of a statement that began under it", () => {
  const policyAgeMs = 10_000;
  const serverTimeoutMs = 5000;
  const lastEffectMs = RESEND_WITHIN_MS + USE_TIMEOUT_MS + serverTimeoutMs;
  expect(POLICY_SETTLES_MS).toBeGreaterThan(policyAgeMs + lastEffectMs);
  expect(POLICY_SETTLES_MS).toBeLessThan(30_000);
});

test("a statement that waited while records were lost has no effect", async () => {
  const recordLoss: RecordLoss = { lastAtMs: 0 };
  const pool = openPool({
    databaseUrl: database.url,
    size: 1,
    throughPgBouncer: false,
    async onConnected() {
      recordLoss.lastAtMs = 1;
      return true;
    },
    recordLoss,
  });
  onTestFinished(() => pool.close());
  await expect(pool.run(write, ["before"])).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(await database.query("select from written where by = 'before'")).toHaveLength(0);
});

test("a refused statement leaves its connection open", async () => {
  let connected = 0;
  const pool = open(async () => {
    connected++;
    return true;
  });
  await pool.run(write, ["twice"]);
  for (let times = 0; times < 5; times++)
    await expect(pool.run(write, ["twice"])).rejects.toMatchObject({ sqlState: "23505" });
  await pool.run(write, ["once more"]);
  expect(connected).toBe(1);
});

test("a connection that Postgres ends is replaced", async () => {
  let connected = 0;
  const pool = open(async () => {
    connected++;
    return true;
  });
  const end = { name: "end", text: "select pg_terminate_backend(pg_backend_pid())" };
  await expect(pool.run(end, [])).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  await pool.run(write, ["after the end"]);
  expect(connected).toBe(2);
});
