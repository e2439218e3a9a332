import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { MIGRATIONS_DIR, shippedMigrations } from "../../server/src/core/store/shipped-migrations.ts";
import { lintMigration } from "../helpers/migrations/rules.ts";

test("no migration rewrites or reads a large table while callers wait", async () => {
  const objections: string[] = [];
  for (const name of await shippedMigrations()) {
    const found = lintMigration(await readFile(join(MIGRATIONS_DIR, `${name}.sql`), "utf8"));
    objections.push(...found.map((objection) => `${name}: ${objection}`));
  }
  expect(objections).toEqual([]);
});

describe("the rules of migrations", () => {
  test.each([
    "alter table records add column a text",
    "alter table records add column a text, add column b int not null default 7",
    "alter table records add constraint a check (b in ('x', 'y')) not valid",
    "alter table tenants add column a text not null check (a <> '')",
    "create table a (id int); create index a_id on a (id)",
    "create function f() returns int language sql as $$ select count(*) from records $$",
    "-- Statement by statement\ndrop index concurrently if exists a; create index concurrently a on records (key)",
    "-- Statement by statement\nalter table records validate constraint a",
    "-- Statement by statement\ndo $$ begin loop update records set a = 1 where key in (select key from records where a is null limit 1000); exit when not found; commit; end loop; end $$",
  ])("allow: %s", (sql) => {
    expect(lintMigration(sql)).toEqual([]);
  });

  test.each([
    "alter table records add column a timestamptz generated always as (claimed_at) stored",
    "alter table records add column a uuid not null default gen_random_uuid()",
    "alter table records add column a int not null default 1 check (a > 0)",
    "alter table records add column a int not null",
    "alter table records add column a text, alter column b type bigint",
    "alter table records add constraint a check (b > 0)",
    "alter table records validate constraint a",
    "create index a on records (key)",
    "create index concurrently a on records (key)",
    "update records set a = 1",
    "do $$ begin update records set a = 1; end $$",
    "insert into a select * from audit_events",
    "lock table records",
    "-- Statement by statement\ncreate index concurrently a on records (key)",
    "-- Statement by statement\ncreate index concurrently if not exists a on records (key)",
    "-- Statement by statement\nalter table tenants add column a text",
    "-- Statement by statement\ndo $$ begin update records set a = 1; end $$",
  ])("forbid: %s", (sql) => {
    expect(lintMigration(sql)).toHaveLength(1);
  });
});
