import type pg from "pg";

/**
 * The migrations that rewrite the table of records under a lock that stops all calls. The rules of migrations
 * allow no further one (test/helpers/migrations/rules.ts): 0014 is older than they are. Why it is not
 * changed: server/decisions/0020-migrations-beside-callers.md.
 */
const REWRITING: readonly string[] = ["0014_ambiguous_from"];

/** Rewritten in half a second on two cores with other work (30 s per GiB), which callers do not notice. */
const MAX_REWRITTEN_BYTES = 16 * 1024 * 1024;

/** `migrate` would stop the service. Its message says what to do. */
export class MigrationRefused extends Error {
  override readonly name = "MigrationRefused";
}

/** The schema of the migration before: `replicas` may be missing. */
const FIND_TABLES = `
select to_regclass('records') is not null and to_regclass('replicas') is not null as found`;

/** Replicas are live as those that share quotas are (core/store/replicas.ts). */
const FIND_COST = `
select pg_table_size('records')::numeric as bytes,
       (select count(*)::int from replicas where seen_at > now() - interval '10 seconds') as replicas`;

/** @throws MigrationRefused if the migration rewrites a large table that replicas use now. */
export async function requireNoReplicas(client: pg.Client, name: string): Promise<void> {
  if (!REWRITING.includes(name)) return;
  const tables = await client.query<{ found: boolean }>(FIND_TABLES);
  if (tables.rows[0]?.found !== true) return;
  const { rows } = await client.query<{ bytes: number; replicas: number }>(FIND_COST);
  const { bytes = 0, replicas = 0 } = rows[0] ?? {};
  if (bytes <= MAX_REWRITTEN_BYTES || replicas === 0) return;
  throw new MigrationRefused(
    `${name} rewrites the records (${Math.round(bytes / 1024 / 1024)} MiB, about 30 s per GiB), and calls would wait for its end. ` +
      `Stop the ${replicas} live replicas, wait 10 s, and run migrate again.`,
  );
}
