import pg from "pg";

/** SQLSTATE duplicate_database; and unique_violation, where somebody else is creating it at the same moment. */
const ALREADY_THERE = ["42P04", "23505"];

/** Creates a database unless there is one of that name. `create database` takes no parameters, so the name is quoted. */
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
