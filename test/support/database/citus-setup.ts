import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { makeDataDir } from "../processes/data-dir.ts";
import { nameItself } from "./citus.ts";

/**
 * Settings of the nodes, which are as durable as the tests' other servers. Citus prepares transactions of several
 * shards, moves shards by logical replication, and runs a background worker in each database. Connections between
 * nodes use sockets, which have no TLS: without `node_conninfo`, Citus would make certificates.
 */
const SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "300",
  max_prepared_transactions: "600",
  max_worker_processes: "64",
  max_replication_slots: "32",
  wal_level: "logical",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
  // Tests make statements fail by triggers.
  "citus.enable_unsafe_triggers": "on",
};

const NODES = ["coordinator", "worker1", "worker2"] as const;

/** Starts a Citus of a coordinator and two workers for all test files of a project. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await makeDataDir("onceward-citus-");
  const binaries = project.config.provide.postgresBinaries ?? "";
  const nodes = await Promise.all(
    NODES.map((name) => startEmbeddedPostgres({ dataDir: join(dir, name), settings: SETTINGS, binaries })),
  );
  for (const node of nodes) await nameItself(node.url("postgres"));
  const [coordinator, ...workers] = nodes.map((node) => node.url("postgres"));
  if (coordinator === undefined) throw new Error("a Citus has a coordinator");
  project.provide("postgresUrl", coordinator);
  project.provide("citusWorkerUrls", workers);
  return async () => {
    for (const node of nodes) await node.stop();
    await rm(dir, { recursive: true, force: true });
  };
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The URLs of the maintenance databases of a Citus' workers; empty for a plain Postgres. */
    readonly citusWorkerUrls: readonly string[];
  }
}
