import { beforeAll, expect, test } from "vitest";
import { limitLocks } from "../../server/src/database/limit-locks.ts";
import type { Runner } from "../../server/src/database/pool.ts";
import { openConnection, openStorePool } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";

const database = useDatabase();

beforeAll(async () => {
  await database.query("insert into tenants (name) values ('locked')");
});

const LOCK = { name: "", text: "select 1 from tenants where name = 'locked' for update" };

test.each<[string, (transaction: Runner) => Promise<void>]>([
  ["a transaction", async () => {}],
  ["a transaction of the background", limitLocks],
])("%s that waits for its next statement for too long loses its locks", async (_, limit) => {
  const stopped = openStorePool(database, 1).transaction(async (transaction) => {
    await limit(transaction);
    await transaction.run(LOCK, []);
    // As if the replica was stopped: its next statement follows after another transaction has had the lock.
    const other = await openConnection(database);
    await other.query("set statement_timeout = '15s'");
    await other.query(LOCK.text);
    await transaction.run(LOCK, []);
  });
  await expect(stopped).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
});
