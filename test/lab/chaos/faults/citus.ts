import { shardOf } from "../../../../server/src/citus/shard-map.ts";
import type { ChaosCitus, CitusNode } from "../citus.ts";
import type { Rig } from "../rig.ts";
import { type Fault, last, postgresFault, type Scene } from "./fault.ts";

/** Faults of the nodes of Citus, and moves of its shards. */
export const CITUS_FAULTS: readonly Fault[] = [
  workerFault("worker-kill", async (scene, { postgres }) => {
    await postgres.kill();
    await last(scene, 500, 2500);
    await postgres.restart();
  }),
  workerFault("worker-restart", async (_, { postgres }) => {
    await postgres.shutDown();
    await postgres.restart();
  }),
  workerFault("worker-freeze", async (scene, { postgres }) => {
    postgres.signal("SIGSTOP");
    await last(scene, 1500, 4000);
    postgres.signal("SIGCONT");
  }),
  // The standby has everything that was acknowledged.
  workerFault("worker-failover", async (scene, { postgres }) => {
    await postgres.addStandby();
    await last(scene, 500, 1500);
    await postgres.failOver();
  }),
  workerFault("worker-blackhole", async (scene, { proxy }) => {
    proxy.setMode("swallow");
    await last(scene, 1500, 4000);
    proxy.setMode("forward");
    // Open connections lack bytes and can't be used again.
    proxy.cut();
  }),
  postgresFault("coordinator-restart", async (postgres) => {
    await postgres.shutDown();
    await postgres.restart();
  }),
  moveFault("shard-move-block-writes", "block_writes"),
  moveFault("shard-move-logical", "force_logical"),
];

function citusOf({ citus }: Rig): ChaosCitus {
  if (citus === undefined) throw new Error("the run has no Citus");
  return citus;
}

/** A fault of one worker, which hits the keys of its shards. */
function workerFault(name: string, inject: (scene: Scene, worker: CitusNode) => Promise<void>): Fault {
  return {
    name,
    target: "postgres",
    async inject(scene) {
      const citus = citusOf(scene.rig);
      const worker = citus.workers[scene.random.below(citus.workers.length)];
      if (worker === undefined) throw new Error("there are no workers");
      scene.onVictim({ keys: await citus.keysOn(worker) });
      await inject(scene, worker);
    },
  };
}

const MOVE = "select citus_move_shard_placement($1, '127.0.0.1', $2, '127.0.0.1', $3, $4)";

/** A move of a shard from the worker that holds more of them, or as many, to the other one. */
function moveFault(name: string, mode: "block_writes" | "force_logical"): Fault {
  return {
    name,
    target: "postgres",
    async inject({ rig, random, onVictim }) {
      const { coordinator, workers, shards } = citusOf(rig);
      const before = await shards();
      const heldBy = ({ proxy }: CitusNode) => before.filter(({ node }) => node.port === proxy.port);
      const [from, to] = random.shuffle(workers).toSorted((a, b) => heldBy(b).length - heldBy(a).length);
      const shard = from && random.shuffle(heldBy(from))[0];
      if (from === undefined || to === undefined || shard === undefined) throw new Error("no shard can move");
      onVictim({ movedKeys: (key) => shardOf(before, key).id === shard.id });
      // The coordinator's connection to a worker that was away ends with its first use.
      const move = () => coordinator.query(MOVE, [shard.id, from.proxy.port, to.proxy.port, mode]);
      await move().catch(move);
      const after = (await shards()).find(({ id }) => id === shard.id);
      if (after?.node.port !== to.proxy.port) throw new Error(`shard ${shard.id} did not move`);
    },
  };
}
