import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleOverPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOverPostgres } from "drizzle-orm/postgres-js";
import { CamelCasePlugin, Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { DataSource } from "typeorm";
import { afterAll, beforeAll } from "vitest";
import {
  drizzleExecutor,
  kyselyExecutor,
  postgresExecutor,
  typeormExecutor,
} from "../../../clients/typescript/src/inbox.ts";
import { type CallerDatabase, createCallerDatabase, INSERT_EFFECT } from "./caller-database.ts";
import { describeExecutor } from "./executor-suite.ts";
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

for (const [library, open] of LIBRARIES) describeExecutor(library, () => database, open);
