import type { Runner } from "../../../core/store/pool.ts";

/** Settings of Postgres that matter to the service, by name, in the unit of `pg_settings`. */
export type PostgresSettings = Readonly<Record<(typeof NAMES)[number], string>>;

const NAMES = [
  "server_version",
  "server_version_num",
  "in_hot_standby",
  "default_transaction_read_only",
  "default_transaction_isolation",
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "synchronous_standby_names",
  "autovacuum",
  "deadlock_timeout",
  "max_connections",
  "superuser_reserved_connections",
  "reserved_connections",
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "enable_seqscan",
  "enable_hashjoin",
  "enable_mergejoin",
  "enable_bitmapscan",
  "jit",
] as const;

const readSettings = {
  name: "read_postgres_settings",
  text: "select s.name, s.setting from pg_settings s where s.name = any ($1::text[])",
};

/** Reads the settings that are in force on the runner's connection. An unknown one is an empty text. */
export async function readPostgresSettings(runner: Runner): Promise<PostgresSettings> {
  const rows = await runner.run<{ name: string; setting: string }>(readSettings, [NAMES]);
  const found = new Map(rows.map(({ name, setting }) => [name, setting]));
  return Object.fromEntries(NAMES.map((name) => [name, found.get(name) ?? ""])) as PostgresSettings;
}
