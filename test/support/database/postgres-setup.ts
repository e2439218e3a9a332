import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { makeDataDir } from "../processes/data-dir.ts";
import { TEMPLATE_DATABASE } from "./database.ts";
import { copyEmptyCluster } from "./empty-cluster.ts";

/** Tests that kill a Postgres use durable settings; no other test needs to wait for the disk. */
const SETTINGS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" };

/**
 * Starts one real Postgres for all test files of a project, with a migrated template database that each file
 * copies.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await makeDataDir("onceward-test-");
  const binaries = project.config.provide.postgresBinaries;
  if (binaries === "") await copyEmptyCluster(join(dir, "data"));
  const postgres = await startEmbeddedPostgres({
    dataDir: join(dir, "data"),
    settings: SETTINGS,
    ...(binaries && { binaries }),
  });
  await ensureDatabase(postgres.url("postgres"), TEMPLATE_DATABASE);
  await migrate(postgres.url(TEMPLATE_DATABASE), () => {});
  project.provide("postgresUrl", postgres.url("postgres"));
  return async () => {
    await postgres.stop();
    await rm(dir, { recursive: true, force: true });
  };
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The `bin` directory of another Postgres; empty for the packaged one. */
    readonly postgresBinaries: string;
    /** The URL of the maintenance database of the project's Postgres. */
    readonly postgresUrl: string;
  }
}
