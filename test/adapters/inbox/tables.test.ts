import { beforeEach, expect, test } from "vitest";
import { INBOX_MIGRATION, once, type SweepResult, sweep } from "../../../clients/typescript/src/inbox.ts";
import { openConnection } from "../../support/database/connections.ts";
import { createTestDatabase } from "../../support/database/database.ts";
import { useCallerDatabase } from "./transactions.ts";

const { caller: database, db } = useCallerDatabase();

beforeEach(async () => {
  await database.query("truncate onceward_inbox, onceward_completions");
});

const DAY_MS = 24 * 3_600_000;

/** Writes `count` messages that were handled `daysAgo` days ago. */
async function handled(count: number, daysAgo: number): Promise<void> {
  await database.query(
    `insert into onceward_inbox (consumer, key, received_at)
     select 'billing', $2 || '-' || n, now() - $2::text::int * interval '1 day' from generate_series(1, $1) n`,
    [count, String(daysAgo)],
  );
}

test("the migration can run again, and concurrently, and keeps existing rows", async () => {
  const empty = await createTestDatabase("template0");
  await Promise.all(Array.from({ length: 4 }, () => empty.query(INBOX_MIGRATION)));
  await empty.query("insert into onceward_inbox (consumer, key) values ('billing', 'event-1')");
  await empty.query(INBOX_MIGRATION);
  expect(await empty.query("select key from onceward_inbox")).toEqual([{ key: "event-1" }]);
  await empty.drop();
});

test("the tables' comments contain their version", async () => {
  const [row] = await database.query<{ comment: string }>(
    "select obj_description('onceward_inbox'::regclass) as comment",
  );
  expect(row?.comment).toContain("version 1");
});

test("a sweep deletes older rows and keeps newer ones", async () => {
  await handled(3, 8);
  await handled(2, 6);
  expect(await sweep(db.pool, { olderThanMs: 7 * DAY_MS })).toEqual({ inbox: 3, completions: 0 });
  const rows = await database.query("select key from onceward_inbox order by key");
  expect(rows).toEqual([{ key: "6-1" }, { key: "6-2" }]);
});

test("a sweep deletes no more than its limit, the oldest first", async () => {
  await handled(2, 8);
  await handled(2, 9);
  expect(await sweep(db.pool, { olderThanMs: 7 * DAY_MS, limit: 3 })).toMatchObject({ inbox: 3 });
  expect(await database.query("select left(key, 1) as days from onceward_inbox")).toEqual([{ days: "8" }]);
});

test("concurrent sweeps delete each row once", async () => {
  await handled(1000, 8);
  const sweeps = Array.from({ length: 8 }, () => sweep(db.pool, { olderThanMs: 7 * DAY_MS, limit: 100 }));
  const swept = await Promise.all(sweeps);
  expect(swept.map(({ inbox }) => inbox)).toEqual(Array.from({ length: 8 }, () => 100));
  expect(await database.query("select from onceward_inbox")).toHaveLength(200);
});

test("a sweep does not wait for locked rows", async () => {
  await handled(2, 8);
  const holder = await openConnection(database);
  await holder.query("begin");
  await holder.query("select from onceward_inbox where key = '8-1' for update");
  expect(await sweep(db.pool, { olderThanMs: 7 * DAY_MS })).toMatchObject({ inbox: 1 });
});

test("a delivery after the sweep runs again", async () => {
  const message = { consumer: "billing", key: "8-1" };
  await handled(1, 8);
  const deliver = () => db.transaction((tx) => once(tx.executor, message, () => "again"));
  expect(await deliver()).toMatchObject({ replayed: true });
  await sweep(db.pool, { olderThanMs: 7 * DAY_MS });
  expect(await deliver()).toMatchObject({ replayed: false });
});

test("a sweep deletes only delivered completions", async () => {
  await database.query(
    `insert into onceward_completions (namespace, key, fencing_token, written_at, delivered_at, undeliverable) values
       ('orders', 'delivered', 1, now() - interval '8 days', now() - interval '8 days', null),
       ('orders', 'just delivered', 1, now() - interval '8 days', now() - interval '6 days', null),
       ('orders', 'pending', 1, now() - interval '8 days', null, null),
       ('orders', 'undeliverable', 1, now() - interval '8 days', null, 'RECORD_NOT_FOUND')`,
  );
  const swept: SweepResult = await sweep(db.pool, { olderThanMs: 7 * DAY_MS });
  expect(swept).toEqual({ inbox: 0, completions: 1 });
  expect(await database.query("select from onceward_completions where key = 'delivered'")).toEqual([]);
});

test.each([
  ["olderThanMs", { olderThanMs: 0 }],
  ["olderThanMs", { olderThanMs: Number.NaN }],
  ["limit", { olderThanMs: DAY_MS, limit: 10_001 }],
])("a sweep with an invalid %s is refused", async (field, options) => {
  await expect(sweep(db.pool, options)).rejects.toMatchObject({ violations: [{ field }] });
});

test("storing a value updates no index", async () => {
  await db.transaction(async (tx) => {
    for (let index = 0; index < 200; index++) {
      await once(tx.executor, { consumer: "billing", key: `event-${index}` }, () => ({ index }));
    }
    await tx.executor("select pg_stat_force_next_flush()", []);
  });
  const [row] = await database.query(
    `select n_tup_upd = n_tup_hot_upd as hot from pg_stat_user_tables
      where relname = 'onceward_inbox' and n_tup_upd > 0`,
  );
  expect(row).toEqual({ hot: true });
});
