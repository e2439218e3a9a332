import { fillTables } from "../../support/database/crowded-tables.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database/database.ts";
import { ROWS } from "./rows.ts";

/** Creates databases by the age of their statistics, from a filled database or from the empty template. */
export const STATISTICS: Readonly<Record<string, (filled: string) => Promise<TestDatabase>>> = {
  "that were never gathered": (filled) => createTestDatabase(filled),
  async "of empty tables"() {
    const database = await createUnanalyzedDatabase();
    await database.query("vacuum analyze");
    await fillTables(database, ROWS);
    return database;
  },
  async "from before the rows were due"(filled) {
    const database = await createTestDatabase(filled);
    await database.query("update records set sweep_at = sweep_at + interval '1 day'");
    await database.query("vacuum analyze");
    await database.query("update records set sweep_at = sweep_at - interval '1 day'");
    return database;
  },
  // As after a vacuum in a quiet night in which nearly all records ended, when the pages are filled again.
  async "of tables that were nearly emptied"(filled) {
    const database = await createTestDatabase(filled);
    await database.query("vacuum analyze");
    await database.query("update pg_class set reltuples = 1 where relnamespace = 'public'::regnamespace");
    return database;
  },
};

/** Makes a database whose statistics only a test gathers. */
export async function createUnanalyzedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  for (const { name } of await database.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  )) {
    await database.query(`alter table ${name} set (autovacuum_enabled = false)`);
  }
  return database;
}
