import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureDatabase } from "../../../../server/dev/databases.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../../server/dev/embedded/postgres.ts";
import { distributeRecords } from "../../../../server/src/citus/distribute-records.ts";
import { migrate } from "../../../../server/src/database/migrate.ts";
import { addNodes, nameItself } from "../../../support/database/citus.ts";
import { findCitusPostgres } from "../../../support/database/citus-binaries.ts";
import { runStatements } from "../../../support/database/statement-runner.ts";
import { createTenant } from "../../../support/servers/tenants.ts";
import { openBenchDatabase } from "../database.ts";
import type { Figure } from "../figure.ts";
import { alternate, runSlice } from "../load.ts";
import { processorTimeOf, processorTimeOfFamily } from "../processor-time.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** A Citus with Postgres' durable defaults; connections between its nodes use sockets. */
const SETTINGS = {
  max_prepared_transactions: "200",
  wal_level: "logical",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
};
const DATABASE = "bench_citus";

/** A Citus of a coordinator and two workers. */
interface BenchCitus {
  /** Of the coordinator. */
  readonly url: string;
  /** The postmasters' process numbers. */
  readonly pids: { readonly coordinator: number; readonly workers: readonly number[] };
}

/** Starts a Citus with records in as many shards as `migrate --citus` makes. */
async function startCitus(binaries: string, cleanUp: AsyncDisposableStack): Promise<BenchCitus> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-citus-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  await chmod(dir, 0o755);
  const nodes: EmbeddedPostgres[] = [];
  for (const name of ["coordinator", "worker1", "worker2"]) {
    const node = await startEmbeddedPostgres({ dataDir: join(dir, name), settings: SETTINGS, binaries });
    cleanUp.defer(() => node.stop());
    nodes.push(node);
    await nameItself(node.url("postgres"));
    await ensureDatabase(node.url("postgres"), DATABASE);
    await runStatements(node.url(DATABASE), "create extension citus");
  }
  const [coordinator, ...workers] = nodes as [EmbeddedPostgres, ...EmbeddedPostgres[]];
  const url = coordinator.url(DATABASE);
  await addNodes({ coordinatorUrl: url, workerUrls: workers.map((worker) => worker.url(DATABASE)) });
  await migrate(url, () => {});
  await distributeRecords(url);
  return {
    url,
    pids: { coordinator: coordinator.pid, workers: workers.map(({ pid }) => pid) },
  };
}

const CALLERS = 256;

/**
 * Measures P17: claims on a Citus of three nodes, beside claims on a plain Postgres, and the processor time
 * of each part.
 */
export const measureCitus: Figure = async ({ rig, main, violations, signal, pace, progress }) => {
  const binaries = await findCitusPostgres(process.env.PATH);
  if (binaries === undefined) {
    progress("the extension citus is not installed: P17 is skipped");
    return [];
  }
  progress(`claims on Citus, ${CALLERS} callers`);
  await using cleanUp = new AsyncDisposableStack();
  const { url, pids } = await startCitus(binaries, cleanUp);
  const database = cleanUp.use(openBenchDatabase(url));
  const on = { database, tenant: await createTenant(database) };
  await using station = await rig.startStation({ on });
  const claims = {
    plain: new FreshClaims(oncewardTarget(main.client.calls, main.database), violations),
    citus: new FreshClaims(oncewardTarget(station.client.calls, database), violations),
  };
  const measured = await alternate(
    { plain: claims.plain.claim, citus: claims.citus.claim },
    { ...pace, callers: CALLERS },
    signal,
  );
  const before = await processorTimes(station.server.pid, pids);
  let count = 0;
  const counted = async () => {
    await claims.citus.claim();
    count++;
  };
  await runSlice(counted, { callers: CALLERS, durationMs: pace.slices * pace.sliceMs }, signal);
  const after = await processorTimes(station.server.pid, pids);
  const microsEach = (part: keyof typeof before) => ((after[part] - before[part]) / count) * 1e6;
  for (const each of Object.values(claims)) await each.verify();
  return [
    {
      figure: "P17",
      what: `claims/s on Citus ÷ plain Postgres, ${CALLERS} callers`,
      value: measured.citus.perSecond / measured.plain.perSecond,
      unit: "×",
      bar: { atLeast: 0.7 },
      raw: {
        "Citus /s": measured.citus.perSecond,
        "plain /s": measured.plain.perSecond,
        "replica µs": microsEach("replicaS"),
        "coordinator µs": microsEach("coordinatorS"),
        "workers µs": microsEach("workersS"),
      },
    },
  ];
};

/** Returns the processor time that the replica and the nodes have used so far, in seconds. */
async function processorTimes(replica: number, { coordinator, workers }: BenchCitus["pids"]) {
  const ofWorkers = await Promise.all(workers.map(processorTimeOfFamily));
  return {
    replicaS: await processorTimeOf(replica),
    coordinatorS: await processorTimeOfFamily(coordinator),
    workersS: ofWorkers.reduce((sum, each) => sum + each, 0),
  };
}
