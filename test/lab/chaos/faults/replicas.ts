import { anyReplica, type Fault, last } from "./fault.ts";

const DRAINED = 0;

/** Faults of replicas. */
export const REPLICA_FAULTS: readonly Fault[] = [
  {
    name: "replica-kill",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      await replica.kill();
      await last(scene, 0, 2000);
      await replica.restart();
    },
  },
  {
    // Replies are dropped after their statements have committed; then the replica is killed.
    name: "replica-kill-before-reply",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      replica.inbound.setMode("drop-replies");
      await last(scene, 50, 200);
      await replica.kill();
      replica.inbound.setMode("forward");
      replica.inbound.cut();
      await replica.restart();
    },
  },
  {
    name: "replica-reply-lost",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      replica.inbound.setMode("lose-replies");
      await last(scene, 300, 1000);
      replica.inbound.setMode("forward");
    },
  },
  {
    name: "replica-drain",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      const how = await replica.drain();
      await replica.restart();
      if (how !== DRAINED) throw new Error(`${replica.name} drained with ${how}`);
    },
  },
  {
    // For two leases.
    name: "replica-freeze",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      replica.signal("SIGSTOP");
      await last(scene, 2000, 4000);
      replica.signal("SIGCONT");
    },
  },
  {
    name: "replica-stall",
    target: "replica",
    async inject(scene) {
      anyReplica(scene).signal("SIGUSR2");
      await last(scene, 5000);
    },
  },
  {
    name: "replica-clock-jump",
    target: "replica",
    async inject(scene) {
      const replica = anyReplica(scene);
      replica.signal("SIGWINCH");
      await last(scene, 3000, 6000);
      replica.signal("SIGWINCH");
    },
  },
  {
    name: "replica-slow-network",
    target: "replica",
    async inject(scene) {
      const { inbound } = anyReplica(scene);
      inbound.setMode(scene.random.below(2) === 0 ? "delay" : "slice");
      await last(scene, 1000, 3000);
      inbound.setMode("forward");
    },
  },
];
