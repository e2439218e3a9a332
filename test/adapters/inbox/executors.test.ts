import { CamelCasePlugin, Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { kyselyExecutor, postgresExecutor } from "../../../clients/typescript/src/inbox.ts";
import { type CallerDatabase, createCallerDatabase, INSERT_EFFECT } from "./caller-database.ts";
import { connectPostgres } from "./connect-postgres.ts";
import { describeExecutor } from "./executor-suite.ts";
import { openTransactions, type Transactions } from "./transactions.ts";

let database: CallerDatabase;

beforeAll(async () => {
  database = await createCallerDatabase();
});

afterAll(() => database?.drop());

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

const LIBRARIES = [
  ["pg", openTransactions],
  ["postgres", openPostgres],
  ["Kysely", openKysely],
] as const;

for (const [library, open] of LIBRARIES) describeExecutor(library, () => database, open);
