import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/database/migrate.ts";

/** Calls a function with the URL of an empty migrated database, on a Postgres that is removed afterwards. */
export async function withMigratedPostgres(use: (databaseUrl: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-generate-"));
  // Where this runs as root, Postgres runs as another user, who must have access.
  await chmod(dir, 0o755);
  try {
    const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
    try {
      await migrate(postgres.url("postgres"), () => {});
      await use(postgres.url("postgres"));
    } finally {
      await postgres.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
