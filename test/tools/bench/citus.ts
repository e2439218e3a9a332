import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/core/store/migrate.ts";
import { distributeRecords } from "../../../server/src/features/citus/distribute-records.ts";
import { runStatements } from "../../helpers/database/statement-runner.ts";

/** A Citus with Postgres' durable defaults; connections between its nodes use sockets. */
const SETTINGS = {
  max_prepared_transactions: "200",
  wal_level: "logical",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
};
const DATABASE = "bench_citus";

/** A Citus of a coordinator and two workers. */
export interface BenchCitus {
  /** Of the coordinator. */
  readonly url: string;
  /** The postmasters' process numbers. */
  readonly pids: { readonly coordinator: number; readonly workers: readonly number[] };
}

/** Starts a Citus with records in as many shards as `migrate --citus` makes. */
export async function startCitus(binaries: string, cleanUp: AsyncDisposableStack): Promise<BenchCitus> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-citus-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  await chmod(dir, 0o755);
  const nodes: EmbeddedPostgres[] = [];
  for (const name of ["coordinator", "worker1", "worker2"]) {
    const node = await startEmbeddedPostgres({ dataDir: join(dir, name), settings: SETTINGS, binaries });
    cleanUp.defer(() => node.stop());
    nodes.push(node);
    await runStatements(
      node.url("postgres"),
      `alter system set citus.local_hostname = '${hostOf(node)}'`,
      "select pg_reload_conf()",
    );
    await ensureDatabase(node.url("postgres"), DATABASE);
    await runStatements(node.url(DATABASE), "create extension citus");
  }
  const [coordinator, ...workers] = nodes as [EmbeddedPostgres, ...EmbeddedPostgres[]];
  const url = coordinator.url(DATABASE);
  await runStatements(
    url,
    `select citus_set_coordinator_host(${addressOf(coordinator)})`,
    ...workers.map((worker) => `select citus_add_node(${addressOf(worker)})`),
  );
  await migrate(url, () => {});
  await distributeRecords(url);
  return {
    url,
    pids: { coordinator: coordinator.pid, workers: workers.map(({ pid }) => pid) },
  };
}

/** Returns the directory of a node's socket. */
function hostOf(node: EmbeddedPostgres): string {
  return new URL(node.url("postgres")).searchParams.get("host") ?? "";
}

function addressOf(node: EmbeddedPostgres): string {
  return `'${hostOf(node)}', ${new URL(node.url("postgres")).port}`;
}
