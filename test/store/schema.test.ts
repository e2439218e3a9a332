import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createTestDatabase } from "../support/database/database.ts";
import { dumpSchema, SCHEMA_FILE } from "../support/database/schema-dump.ts";
import { useDatabase } from "../support/database/use-database.ts";

const database = useDatabase();

test("server/schema.sql is the migrations' schema; `npm run generate -- schema` writes it", async () => {
  expect(await dumpSchema(database.url)).toBe(await readFile(SCHEMA_FILE, "utf8"));
});

test.each([
  ["a column", "alter table records add column extra int"],
  ["a default", "alter table records alter column owner set default 'nobody'"],
  ["a type", "alter table records alter column attempt type bigint"],
  ["a nullable column", "alter table records alter column owner drop not null"],
  ["a constraint", "alter table records drop constraint records_state_check"],
  ["an index", "drop index records_sweep_at"],
  ["a storage parameter", "alter table records set (fillfactor = 100)"],
  ["a sequence", "create sequence extra"],
  ["a collation", `alter table records alter column key type text collate "default"`],
])("the dump shows a change of %s", async (_, change) => {
  const changed = await createTestDatabase();
  try {
    await changed.query(change);
    expect(await dumpSchema(changed.url)).not.toBe(await dumpSchema(database.url));
  } finally {
    await changed.drop();
  }
});
