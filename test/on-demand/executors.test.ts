import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleOverPg, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOverPostgres, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import pg from "pg";
import { DataSource } from "typeorm";
import { afterAll, beforeAll } from "vitest";
import { drizzleExecutor, typeormExecutor } from "../../clients/typescript/src/inbox.ts";
import {
  type CallerDatabase,
  createCallerDatabase,
  INSERT_EFFECT,
} from "../adapters/inbox/caller-database.ts";
import { connectPostgres } from "../adapters/inbox/connect-postgres.ts";
import { describeExecutor } from "../adapters/inbox/executor-suite.ts";
import type { Transactions } from "../adapters/inbox/transactions.ts";

let database: CallerDatabase;

beforeAll(async () => {
  database = await createCallerDatabase();
});

afterAll(() => database?.drop());

function openDrizzle(
  db: NodePgDatabase | PostgresJsDatabase,
  end: Transactions[typeof Symbol.asyncDispose],
): Transactions {
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
    [Symbol.asyncDispose]: end,
  };
}

function openDrizzleOverPg(url: string): Transactions {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  return openDrizzle(drizzleOverPg(pool), () => pool.end());
}

function openDrizzleOverPostgres(url: string): Transactions {
  const sql = connectPostgres(url);
  return openDrizzle(drizzleOverPostgres(sql), () => sql.end());
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
  ["Drizzle over pg", openDrizzleOverPg],
  ["Drizzle over postgres", openDrizzleOverPostgres],
  ["TypeORM", openTypeorm],
] as const;

for (const [library, open] of LIBRARIES) describeExecutor(library, () => database, open);
