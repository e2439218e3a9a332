import pg from "pg";

/** SQLSTATE duplicate_database. */
const DUPLICATE_DATABASE = "42P04";

/** Creates a database unless there is one of that name. `create database` takes no parameters, so the name is quoted. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`create database ${client.escapeIdentifier(name)}`);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== DUPLICATE_DATABASE) throw error;
  } finally {
    await client.end();
  }
}
