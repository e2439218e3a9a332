import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { makeDataDir } from "../processes/data-dir.ts";
import { copyEmptyCluster } from "./empty-cluster.ts";

/** A Postgres for one test file, for tests of commands, which create their schema themselves. */
export interface OwnPostgres {
  /** Creates an empty database, and returns its URL. */
  createDatabase(): Promise<string>;
  /** Returns the server, once it runs. */
  server(): EmbeddedPostgres;
  /** The directory of its data. */
  dataDir(): string;
}

/** Starts it before the file's first test, and stops it after the last one. Postgres gets `settings`. */
export function useOwnPostgres(settings: Readonly<Record<string, string>> = { fsync: "off" }): OwnPostgres {
  let dir = "";
  let postgres: EmbeddedPostgres | undefined;
  beforeAll(async () => {
    dir = await makeDataDir("ow-postgres-");
    await copyEmptyCluster(join(dir, "data"));
    postgres = await startEmbeddedPostgres({ dataDir: join(dir, "data"), settings });
  });
  afterAll(async () => {
    await postgres?.stop();
    await rm(dir, { recursive: true, force: true });
  });
  function server(): EmbeddedPostgres {
    if (postgres === undefined) throw new Error("Postgres is started before the first test");
    return postgres;
  }
  return {
    server,
    dataDir: () => join(dir, "data"),
    async createDatabase() {
      const name = `test_${randomBytes(6).toString("hex")}`;
      await ensureDatabase(server().url("postgres"), name);
      return server().url(name);
    },
  };
}
