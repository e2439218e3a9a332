import { type Fault, last } from "./fault.ts";

/** Faults of clients. */
export const CLIENT_FAULTS: readonly Fault[] = [
  {
    // For two leases: holders continue afterwards without knowing.
    name: "holder-freeze",
    target: "client",
    async inject(scene) {
      const client = scene.clients[scene.random.below(scene.clients.length)];
      if (client === undefined) return;
      scene.onVictim({ client: client.name });
      process.kill(client.pid, "SIGSTOP");
      await last(scene, 2000, 4000);
      process.kill(client.pid, "SIGCONT");
    },
  },
];
