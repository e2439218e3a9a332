import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { joinStatements } from "../../server/src/citus/node-pool.ts";
import type { ShardStatement } from "../../server/src/citus/shard-statement.ts";
import { openPool, type Pool } from "../../server/src/database/pool.ts";
import { useDatabase } from "../support/database/use-database.ts";

const database = useDatabase();
let pool: Pool;

beforeAll(async () => {
  await database.query(
    "create table notes (id int primary key, transaction xid8 default pg_current_xact_id())",
  );
  pool = joinStatements(
    openPool({ databaseUrl: database.url, size: 2, throughPgBouncer: false, onShards: true }),
  );
});

afterAll(() => pool?.close());

beforeEach(() => database.query("truncate notes"));

function insert(shard: number): ShardStatement {
  const text = "insert into notes (id) values ($1::int) returning id";
  return { name: "insert", preparedName: `insert_${shard}`, text, shard };
}

/** Runs statements in the same turn of the event loop. */
function runAll(statements: readonly (readonly [shard: number, id: number])[]) {
  return Promise.allSettled(statements.map(([shard, id]) => pool.run(insert(shard), [id])));
}

/** Returns the notes of each transaction. */
async function transactions(): Promise<readonly string[]> {
  const rows = await database.query<{ ids: string }>(
    "select string_agg(id::text, ' ' order by id) as ids from notes group by transaction order by 1",
  );
  return rows.map(({ ids }) => ids);
}

test("statements for different shards share a transaction, and each gets its own rows", async () => {
  const settled = await runAll([
    [2, 20],
    [1, 10],
    [3, 30],
  ]);
  expect(settled).toEqual([20, 10, 30].map((id) => ({ status: "fulfilled", value: [{ id }] })));
  expect(await transactions()).toEqual(["10 20 30"]);
});

test("two statements for one shard are in different transactions", async () => {
  await runAll([
    [1, 10],
    [1, 11],
    [2, 20],
  ]);
  expect(await transactions()).toEqual(["10 20", "11"]);
});

test("a statement that Postgres refuses fails alone, and the others take effect once", async () => {
  await database.query("insert into notes values (20)");
  const settled = await runAll([
    [1, 10],
    [2, 20],
    [3, 30],
  ]);
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(settled[1]).toMatchObject({ reason: { name: "StatementFailed", sqlState: "23505" } });
  expect(await transactions()).toEqual(["10", "20", "30"]);
});

test("a connection that is lost fails all statements of its round trip", async () => {
  const lose = {
    ...insert(2),
    text: "select pg_terminate_backend(pg_backend_pid()), $1::int",
    preparedName: "lose",
  };
  const settled = await Promise.allSettled([pool.run(insert(1), [10]), pool.run(lose, [20])]);
  for (const each of settled)
    expect(each).toMatchObject({ status: "rejected", reason: { reason: "DATABASE_UNAVAILABLE" } });
  expect(await transactions()).toEqual([]);
});
