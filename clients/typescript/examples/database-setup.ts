import { ensureDatabase } from "../../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";

const DATABASE = "example";

/** A database for an example's own tables. */
export interface ExampleDatabase {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Returns the database of `EXAMPLE_DATABASE_URL`, or else one in the Postgres that `npm start` runs from this
 * directory.
 */
export async function findDatabase(): Promise<ExampleDatabase> {
  const { EXAMPLE_DATABASE_URL } = process.env;
  if (EXAMPLE_DATABASE_URL) return { url: EXAMPLE_DATABASE_URL, stop: async () => {} };
  const postgres = await startEmbeddedPostgres({ dataDir: ".onceward/postgres" });
  await ensureDatabase(postgres.url("postgres"), DATABASE);
  return { url: postgres.url(DATABASE), stop: () => postgres.stop() };
}
