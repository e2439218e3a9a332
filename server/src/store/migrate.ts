import { runner } from "node-pg-migrate";
import { withConnection } from "./connection.ts";
import { MIGRATIONS_DIR, shippedMigrations } from "./shipped-migrations.ts";

const MIGRATIONS_TABLE = "schema_migrations";
/** Limit for reading which migrations ran. Migrations themselves have no time limit. */
const QUERY_TIMEOUT_MS = 10_000;

/** A database's schema compared with the one that this server needs. */
export type SchemaState =
  | { readonly kind: "current" }
  /** These migrations must run first. */
  | { readonly kind: "behind"; readonly missing: readonly string[] }
  /** A newer server has migrated the database. This server can still run. */
  | { readonly kind: "ahead"; readonly unknown: readonly string[] };

/**
 * Runs every missing migration in one transaction, and returns their names. Several replicas may do so at
 * once: an advisory lock lets one of them run first, and the others then find nothing to do.
 */
export async function migrate(databaseUrl: string, log: (line: string) => void): Promise<readonly string[]> {
  const ran = await withConnection({ connectionString: databaseUrl }, (dbClient) =>
    runner({
      dbClient,
      dir: MIGRATIONS_DIR,
      migrationsTable: MIGRATIONS_TABLE,
      direction: "up",
      checkOrder: true,
      advisoryLockMode: "wait",
      logger: { debug: () => {}, info: log, warn: log, error: log },
    }),
  );
  return ran.map((migration) => migration.name);
}

/** Compares the migrations that ran in a database with those that this server contains. Changes nothing. */
export async function readSchemaState(databaseUrl: string): Promise<SchemaState> {
  const shipped = await shippedMigrations();
  const applied = await appliedMigrations(databaseUrl);
  const missing = shipped.filter((name) => !applied.includes(name));
  if (missing.length > 0) return { kind: "behind", missing };
  const unknown = applied.filter((name) => !shipped.includes(name));
  return unknown.length > 0 ? { kind: "ahead", unknown } : { kind: "current" };
}

async function appliedMigrations(databaseUrl: string): Promise<readonly string[]> {
  const config = { connectionString: databaseUrl, query_timeout: QUERY_TIMEOUT_MS };
  return await withConnection(config, async (client) => {
    const found = await client.query<{ there: boolean }>(`select to_regclass($1) is not null as there`, [
      MIGRATIONS_TABLE,
    ]);
    if (!found.rows[0]?.there) return [];
    const { rows } = await client.query<{ name: string }>(`select name from ${MIGRATIONS_TABLE} order by id`);
    return rows.map((row) => row.name);
  });
}
