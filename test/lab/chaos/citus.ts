import { distributeRecords } from "../../../server/src/citus/distribute-records.ts";
import { type PlacedShard, readShardMap, shardOf } from "../../../server/src/citus/shard-map.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import type { Runner } from "../../../server/src/database/pool.ts";
import { type ChaosPostgres, startChaosPostgres } from "../../support/database/chaos-postgres.ts";
import { nameItself } from "../../support/database/citus.ts";
import { runStatements } from "../../support/database/statement-runner.ts";
import { socketOf } from "../../support/network/sockets.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";

/** A server of a run's Citus. */
export interface CitusNode {
  readonly name: string;
  readonly postgres: ChaosPostgres;
  /** Between the node and all others; its port is the node's address for Citus and for replicas. */
  readonly proxy: TcpProxy;
}

/** A run's own Citus: a coordinator and two workers, with the records in shards on the workers. */
export interface ChaosCitus {
  readonly coordinator: ChaosPostgres;
  readonly workers: readonly CitusNode[];
  /** Reads where the shards are. */
  shards(): Promise<readonly PlacedShard[]>;
  /** Returns whether a key lies on a worker now, as a function for as long as no shard moves. */
  keysOn(worker: CitusNode): Promise<(key: string) => boolean>;
}

export interface ChaosCitusOptions {
  /** The directory for the nodes' data. */
  readonly parent: string;
  /** The `bin` directory of a PostgreSQL with the extension citus. */
  readonly binaries: string;
  /** Called with the coordinator's URL whenever that changes. */
  readonly onCoordinatorMoved: (url: string) => void;
}

/** Enough for several shards on each worker, and few enough for statements of all shards. */
const SHARDS = 8;
const WORKERS = ["worker-1", "worker-2"] as const;

/**
 * Settings of all nodes. Commits are durable, also of prepared transactions. Connections between nodes pass a proxy
 * on the loopback: without `node_conninfo`, Citus would make certificates.
 */
const SETTINGS = {
  fsync: "on",
  max_prepared_transactions: "300",
  max_worker_processes: "32",
  max_replication_slots: "32",
  wal_level: "logical",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
};
/** More than all sessions of the coordinator open on a worker, and the replicas' own. */
const WORKER_SETTINGS = { ...SETTINGS, max_connections: "150" };

/** Starts a Citus with distributed records; `cleanUp` stops it. */
export async function startChaosCitus(
  { parent, binaries, onCoordinatorMoved }: ChaosCitusOptions,
  cleanUp: AsyncDisposableStack,
): Promise<ChaosCitus> {
  const start = (name: string, settings: Readonly<Record<string, string>>, onMoved?: (url: string) => void) =>
    startNode({ name, parent, binaries, settings, onMoved }, cleanUp);
  const coordinator = await start("coordinator", SETTINGS, onCoordinatorMoved);
  const workers: CitusNode[] = [];
  for (const name of WORKERS) workers.push(await start(name, WORKER_SETTINGS));
  const { postgres } = coordinator;
  await runStatements(
    postgres.url,
    `select citus_set_coordinator_host('127.0.0.1', ${coordinator.proxy.port})`,
    ...workers.map(({ proxy }) => `select citus_add_node('127.0.0.1', ${proxy.port})`),
  );
  await migrate(postgres.url, () => {});
  await distributeRecords(postgres.url, { shards: SHARDS });
  const runner: Runner = { run: ({ text }, parameters) => postgres.query<never>(text, parameters) };
  async function shards(): Promise<readonly PlacedShard[]> {
    const placed = await readShardMap(runner);
    if (placed === undefined) throw new Error("the records are not distributed");
    return placed;
  }
  return {
    coordinator: postgres,
    workers,
    shards,
    async keysOn({ proxy }) {
      const placed = await shards();
      return (key) => shardOf(placed, key).node.port === proxy.port;
    },
  };
}

interface NodeOptions {
  readonly name: string;
  readonly parent: string;
  readonly binaries: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly onMoved: ((url: string) => void) | undefined;
}

async function startNode(
  { name, parent, binaries, settings, onMoved }: NodeOptions,
  cleanUp: AsyncDisposableStack,
): Promise<CitusNode> {
  let proxy: TcpProxy | undefined;
  const onMove = async (url: string) => {
    proxy?.setTarget(socketOf(url));
    proxy?.cut();
    await nameItself(url);
    onMoved?.(url);
  };
  const postgres = cleanUp.use(await startChaosPostgres(parent, onMove, { binaries, settings }));
  await nameItself(postgres.url);
  await runStatements(postgres.url, "create extension citus");
  const opened = await startTcpProxy(socketOf(postgres.url));
  proxy = opened;
  cleanUp.defer(() => opened.close());
  return { name, postgres, proxy: opened };
}
