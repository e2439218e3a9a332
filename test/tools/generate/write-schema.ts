import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/core/store/migrate.ts";
import { dumpSchema, SCHEMA_FILE } from "../../helpers/database/schema-dump.ts";

/** `npm run schema:dump`: migrates an empty database and writes its schema to a file. */
const dir = await mkdtemp(join(tmpdir(), "onceward-schema-"));
// Where this runs as root, Postgres runs as another user, who must have access.
await chmod(dir, 0o755);
try {
  const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
  try {
    await migrate(postgres.url("postgres"), () => {});
    await writeFile(SCHEMA_FILE, await dumpSchema(postgres.url("postgres")));
  } finally {
    await postgres.stop();
  }
} finally {
  await rm(dir, { recursive: true, force: true });
}
