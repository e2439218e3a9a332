import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { splitStatements, withoutComments } from "../../server/src/database/migration/sql-text.ts";
import { MIGRATIONS_DIR, shippedMigrations } from "../../server/src/database/shipped-migrations.ts";

/** The tables that grow with calls, and not only with tenants and namespaces. */
const LARGE_TABLES = ["records", "audit_events", "usage_hours", "insight_sampled_keys"] as const;

const LARGE = new RegExp(`\\b(${LARGE_TABLES.join("|")})\\b`);

/** A body in quotes does nothing on its own, unless a `do` runs it. */
const CREATES_FUNCTION = /^create (or replace )?function /;

/** A clause of `alter table` that changes the catalog alone, and so takes its lock for an instant. */
const INSTANT_CLAUSES: readonly RegExp[] = [
  // A default that is a constant is stored once. `not null`, `check`, `unique` and `references` read the
  // rows; `generated` rewrites them.
  /^add column (if not exists )?\w+ \w+(\[\])?( collate "C")?( not null)?( default ('[^']*'|[\w.]+))?$/,
  /^add constraint \w+ (check|foreign key) .* not valid$/,
  /^drop constraint (if exists )?\w+$/,
  /^alter column \w+ (set default .+|drop default|drop not null|set statistics \d+)$/,
  /^(set|reset) \([^)]*\)$/,
];

/** What runs beside callers, in a migration that begins with `-- Statement by statement`. */
const BESIDE_CALLERS: readonly RegExp[] = [
  /^create (unique )?index concurrently \w+ on /,
  /^drop index concurrently if exists \w+$/,
  /^alter table \w+ validate constraint \w+$/,
];

/** Of statements of other kinds, those that neither read the rows nor wait for more than an instant. */
const INSTANT_STATEMENTS: readonly RegExp[] = [
  /^(create|drop) trigger /,
  /^comment on /,
  /^grant /,
  /^create sequence /,
  /^create table \w+ \(/,
];

/**
 * Returns what in a migration would stop the service, one sentence each: a statement that rewrites or reads a
 * large table while it holds a lock that callers wait for, or that cannot be repeated where it may have to
 * be. What is not known to be harmless counts.
 */
function lintMigration(sql: string): readonly string[] {
  const byStatement = sql.startsWith("-- Statement by statement");
  const statements = splitStatements(sql).map(withoutComments);
  const created = new Set(
    statements.flatMap((statement) => /^create table (\w+)/.exec(statement)?.[1] ?? []),
  );
  return statements.flatMap((statement, i) => {
    const before = statements[i - 1];
    if (byStatement) return lintRepetition(statement, before);
    if (/\bconcurrently\b/.test(statement)) return [`begin with "-- Statement by statement": ${statement}`];
    return isInstant(statement, created) ? [] : [`it reads or rewrites a large table: ${statement}`];
  });
}

function isInstant(statement: string, created: ReadonlySet<string>): boolean {
  const table = LARGE.exec(statement)?.[1];
  if (table === undefined || created.has(table) || CREATES_FUNCTION.test(statement)) return true;
  const clauses = /^alter table \w+ (.*)$/.exec(statement)?.[1];
  if (clauses === undefined) return INSTANT_STATEMENTS.some((known) => known.test(statement));
  return splitClauses(clauses).every(
    (clause) =>
      INSTANT_CLAUSES.some((known) => known.test(clause)) &&
      (!/ not null/.test(clause) || / default /.test(clause)),
  );
}

/** Splits at the commas outside of parentheses. */
function splitClauses(clauses: string): readonly string[] {
  return clauses.split(/,(?![^(]*\))/).map((clause) => clause.trim());
}

/**
 * A migration of single statements begins again after a failure, and a failed build leaves an invalid index
 * behind.
 */
function lintRepetition(statement: string, before: string | undefined): readonly string[] {
  const index = /^create (?:unique )?index concurrently (\w+)/.exec(statement)?.[1];
  if (index !== undefined && before !== `drop index concurrently if exists ${index}`)
    return [`"drop index concurrently if exists ${index}" has to precede:  ${statement}`];
  const fillsInBatches =
    /^do /.test(statement) && /\blimit \d/.test(statement) && /\bcommit;/.test(statement);
  if (fillsInBatches || BESIDE_CALLERS.some((known) => known.test(statement))) return [];
  return [`it is for another migration, which runs in one transaction: ${statement}`];
}

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
