import { type Fault, last, replicaFault } from "./fault.ts";

const DRAINED = 0;

/** Faults of replicas. */
export const REPLICA_FAULTS: readonly Fault[] = [
  replicaFault("replica-kill", async (replica, scene) => {
    await replica.kill();
    await last(scene, 0, 2000);
    await replica.restart();
  }),
  // Replies are dropped after their statements have committed; then the replica is killed.
  replicaFault("replica-kill-before-reply", async (replica, scene) => {
    replica.inbound.setMode("drop-replies");
    await last(scene, 50, 200);
    await replica.kill();
    replica.inbound.setMode("forward");
    replica.inbound.cut();
    await replica.restart();
  }),
  replicaFault("replica-reply-lost", async (replica, scene) => {
    replica.inbound.setMode("lose-replies");
    await last(scene, 300, 1000);
    replica.inbound.setMode("forward");
  }),
  replicaFault("replica-drain", async (replica) => {
    const how = await replica.drain();
    await replica.restart();
    if (how !== DRAINED) throw new Error(`${replica.name} drained with ${how}`);
  }),
  // For two leases.
  replicaFault("replica-freeze", async (replica, scene) => {
    replica.signal("SIGSTOP");
    await last(scene, 2000, 4000);
    replica.signal("SIGCONT");
  }),
  replicaFault("replica-stall", async (replica, scene) => {
    replica.signal("SIGUSR2");
    await last(scene, 5000);
  }),
  replicaFault("replica-clock-jump", async (replica, scene) => {
    replica.signal("SIGWINCH");
    await last(scene, 3000, 6000);
    replica.signal("SIGWINCH");
  }),
  replicaFault("replica-slow-network", async ({ inbound }, scene) => {
    inbound.setMode(scene.random.below(2) === 0 ? "delay" : "slice");
    await last(scene, 1000, 3000);
    inbound.setMode("forward");
  }),
];
