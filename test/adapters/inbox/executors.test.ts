import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleOverPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOverPostgres } from "drizzle-orm/postgres-js";
import { CamelCasePlugin, Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { DataSource } from "typeorm";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  completeIn,
  drizzleExecutor,
  kyselyExecutor,
  once,
  postgresExecutor,
  sweep,
  typeormExecutor,
} from "../../../clients/typescript/src/inbox.ts";
import { type CallerDatabase, createCallerDatabase, INSERT_EFFECT } from "./caller-database.ts";
import { openTransactions, type Transactions } from "./transactions.ts";

let database: CallerDatabase;

beforeAll(async () => {
  database = await createCallerDatabase();
});

afterAll(async () => {
  await database?.drop();
});

/** Postgres.js needs a socket's directory as an option; node-postgres reads it from the URL. */
function connectPostgres(url: string) {
  const { host, port, user, database: name } = new pg.Client({ connectionString: url });
  return postgres({ host, port, username: user ?? "", database: name ?? "", max: 4 });
}

function openPostgres(url: string): Transactions {
  const sql = connectPostgres(url);
  return {
    pool: postgresExecutor(sql),
    // In an object, because it would treat an array as promises to await.
    transaction: async (work) =>
      (
        await sql.begin(async (tx) => ({
          value: await work({
            executor: postgresExecutor(tx),
            insertEffect: async (key, value) => {
              await tx.unsafe(INSERT_EFFECT, [key, value]);
            },
          }),
        }))
      ).value,
    [Symbol.asyncDispose]: () => sql.end(),
  };
}

function openKysely(url: string): Transactions {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 4 }) });
  const db = new Kysely<Record<string, never>>({ dialect, plugins: [new CamelCasePlugin()] });
  return {
    pool: kyselyExecutor(db),
    transaction: (work) =>
      db.transaction().execute((trx) =>
        work({
          executor: kyselyExecutor(trx),
          insertEffect: async (key, value) => {
            await kyselySql`insert into effects (key, value) values (${key}, ${value})`.execute(trx);
          },
        }),
      ),
    [Symbol.asyncDispose]: () => db.destroy(),
  };
}

function openDrizzleOverPg(url: string): Transactions {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  const db = drizzleOverPg(pool);
  return {
    pool: drizzleExecutor(db, drizzleSql),
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          executor: drizzleExecutor(tx, drizzleSql),
          insertEffect: async (key, value) => {
            await tx.execute(drizzleSql`insert into effects (key, value) values (${key}, ${value})`);
          },
        }),
      ),
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

function openDrizzleOverPostgres(url: string): Transactions {
  const sql = connectPostgres(url);
  const db = drizzleOverPostgres(sql);
  return {
    pool: drizzleExecutor(db, drizzleSql),
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          executor: drizzleExecutor(tx, drizzleSql),
          insertEffect: async (key, value) => {
            await tx.execute(drizzleSql`insert into effects (key, value) values (${key}, ${value})`);
          },
        }),
      ),
    [Symbol.asyncDispose]: () => sql.end(),
  };
}

async function openTypeorm(url: string): Promise<Transactions> {
  const source = new DataSource({ type: "postgres", url, extra: { max: 4 } });
  await source.initialize();
  return {
    pool: typeormExecutor(source),
    transaction: (work) =>
      source.transaction((manager) =>
        work({
          executor: typeormExecutor(manager),
          insertEffect: async (key, value) => {
            await manager.query(INSERT_EFFECT, [key, value]);
          },
        }),
      ),
    [Symbol.asyncDispose]: () => source.destroy(),
  };
}

const LIBRARIES = [
  ["pg", openTransactions],
  ["postgres", openPostgres],
  ["Kysely", openKysely],
  ["Drizzle over pg", openDrizzleOverPg],
  ["Drizzle over postgres", openDrizzleOverPostgres],
  ["TypeORM", openTypeorm],
] as const;

describe.each(LIBRARIES)("over %s", (library, open) => {
  let db: Transactions;

  beforeAll(async () => {
    db = await open(database.url);
  });

  afterAll(async () => {
    await db?.[Symbol.asyncDispose]();
  });

  const value = { id: "invoice-1", note: 'it\'s "quoted" $1 ü' };

  test("a repeat gets the value of the first delivery, and its fingerprint is compared", async () => {
    const message = { consumer: library, key: "event-1", fingerprint: { amount: 100 } };
    const deliver = (fingerprint: unknown) =>
      db.transaction((tx) =>
        once(tx.executor, { ...message, fingerprint }, async () => {
          await tx.insertEffect(`${library}/once`, "done");
          return value;
        }),
      );
    expect(await deliver({ amount: 100 })).toEqual({ value, replayed: false });
    expect(await deliver({ amount: 100 })).toEqual({ value, replayed: true });
    await expect(deliver({ amount: 200 })).rejects.toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
    expect(await database.effects(`${library}/once`)).toHaveLength(1);
  });

  test("a rollback leaves nothing", async () => {
    const thrown = new Error("the caller has changed its mind");
    const handling = db.transaction(async (tx) => {
      await once(tx.executor, { consumer: library, key: "event-2" }, () =>
        tx.insertEffect(`${library}/undone`, "done"),
      );
      throw thrown;
    });
    await expect(handling).rejects.toBe(thrown);
    expect(await database.effects(`${library}/undone`)).toEqual([]);
    const again = db.transaction((tx) =>
      once(tx.executor, { consumer: library, key: "event-2" }, () => "again"),
    );
    expect(await again).toEqual({ value: "again", replayed: false });
  });

  test("outside a transaction nothing happens", async () => {
    const fn = vi.fn();
    const refused = once(db.pool, { consumer: library, key: "event-3" }, fn);
    // Some libraries wrap Postgres' error.
    const error = await refused.catch((thrown: Error & { cause?: object }) => ({
      ...thrown.cause,
      ...thrown,
    }));
    expect(error).toMatchObject({ code: "25P01" });
    expect(fn).not.toHaveBeenCalled();
  });

  test("a completion commits with the effect, and a newer claim takes it over", async () => {
    const fn = vi.fn(() => value);
    for (const fencingToken of [2n ** 53n + 1n, 2n ** 53n + 2n]) {
      const claim = { namespace: "orders", key: library, fencingToken };
      expect(await db.transaction((tx) => completeIn(tx.executor, claim, fn))).toEqual(value);
    }
    expect(fn).toHaveBeenCalledOnce();
    const rows = await database.query("select fencing_token from onceward_completions where key = $1", [
      library,
    ]);
    expect(rows).toEqual([{ fencing_token: String(2n ** 53n + 2n) }]);
  });

  test("a sweep deletes old rows", async () => {
    await database.query(
      "update onceward_inbox set received_at = now() - interval '1 day' where consumer = $1",
      [library],
    );
    expect(await sweep(db.pool, { olderThanMs: 3_600_000 })).toEqual({ inbox: 2, completions: 0 });
  });
});
