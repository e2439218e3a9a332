import pg from "pg";

/**
 * SQLSTATE duplicate_database; and unique_violation, if another connection creates the database at the same
 * time.
 */
const ALREADY_THERE = ["42P04", "23505"];

/** Creates a database unless it exists. `create database` accepts no parameters, so the name is quoted. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`create database ${client.escapeIdentifier(name)}`);
  } catch (error) {
    const { code = "" } = error as { readonly code?: string };
    if (!ALREADY_THERE.includes(code)) throw error;
  } finally {
    await client.end();
  }
}
