import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { ensureDatabase } from "../../../server/src/store/databases.ts";

/** A Postgres for one test file, for tests of commands, which create their schema themselves. */
export interface OwnPostgres {
  /** Creates an empty database, and returns its URL. */
  createDatabase(): Promise<string>;
}

/** Starts it before the file's first test, and stops it after the last one. */
export function useOwnPostgres(): OwnPostgres {
  let dir = "";
  let postgres: EmbeddedPostgres | undefined;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "ow-postgres-"));
    // Where tests run as root, Postgres runs as another user, who must have access.
    await chmod(dir, 0o755);
    postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings: { fsync: "off" } });
  });
  afterAll(async () => {
    await postgres?.stop();
    await rm(dir, { recursive: true, force: true });
  });
  return {
    async createDatabase() {
      if (postgres === undefined) throw new Error("Postgres is started before the first test");
      const name = `test_${randomBytes(6).toString("hex")}`;
      await ensureDatabase(postgres.url("postgres"), name);
      return postgres.url(name);
    },
  };
}
