import pg from "pg";
import { type Executor, pgExecutor } from "../../../clients/typescript/src/inbox.ts";
import { useStarted } from "../../support/use-started.ts";
import { type CallerDatabase, createCallerDatabase, INSERT_EFFECT } from "./caller-database.ts";

/** A transaction of the caller. */
export interface Transaction {
  readonly executor: Executor;
  /** Writes a row of the caller's own table. */
  insertEffect(key: string, value: string): Promise<void>;
}

/** A pool of connections, and transactions over it. */
export interface Transactions extends AsyncDisposable {
  /** Each statement commits separately. */
  readonly pool: Executor;
  /** Commits when the work is done, and rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, begin?: string): Promise<T>;
}

/** Opens transactions with `pg`. */
export function openTransactions(url: string): Transactions {
  const pool = new pg.Pool({ connectionString: url, max: 25 });
  pool.on("error", () => {});
  return {
    pool: pgExecutor(pool),
    async transaction(work, begin = "begin") {
      const client = await pool.connect();
      try {
        await client.query(begin);
        const value = await work({
          executor: pgExecutor(client),
          insertEffect: async (key, effect) => {
            await client.query(INSERT_EFFECT, [key, effect]);
          },
        });
        await client.query("commit");
        return value;
      } catch (error) {
        await client.query("rollback");
        throw error;
      } finally {
        client.release();
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

/** Creates a caller's database and opens transactions on it before the first test of the file, and removes both after the last one. */
export function useCallerDatabase(): { readonly caller: CallerDatabase; readonly db: Transactions } {
  const caller = useStarted(createCallerDatabase, (created) => created.drop());
  const db = useStarted(
    () => openTransactions(caller.url),
    (opened) => opened[Symbol.asyncDispose](),
  );
  return { caller, db };
}
