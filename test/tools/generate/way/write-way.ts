import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../../server/src/core/store/migrate.ts";
import { recordWay } from "./record-way.ts";
import { withWay } from "./way-table.ts";

const README = new URL("../../../../server/README.md", import.meta.url);

/** Writes the way of a granted Claim into `server/README.md`; part of `npm run generate`. */
const dir = await mkdtemp(join(tmpdir(), "onceward-way-"));
// Where this runs as root, Postgres runs as another user, who must have access.
await chmod(dir, 0o755);
try {
  const postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
  try {
    await migrate(postgres.url("postgres"), () => {});
    await writeFile(
      README,
      withWay(await readFile(README, "utf8"), await recordWay(postgres.url("postgres"))),
    );
  } finally {
    await postgres.stop();
  }
} finally {
  await rm(dir, { recursive: true, force: true });
}
