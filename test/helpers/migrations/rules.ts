import { splitStatements, withoutComments } from "../../../server/src/core/store/migration/sql-text.ts";

/** The tables that grow with calls, and not only with tenants and namespaces. */
const LARGE_TABLES = [
  "records",
  "audit_events",
  "usage_hours",
  "insight_tombstones",
  "insight_sampled_keys",
] as const;

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
export function lintMigration(sql: string): readonly string[] {
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
