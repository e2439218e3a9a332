import { type Fault, last } from "./fault.ts";

/** What happens to those who call. */
export const CLIENT_FAULTS: readonly Fault[] = [
  {
    // For two leases: holders of claims go on afterwards as if nothing had happened.
    name: "holder-freeze",
    target: "client",
    async inject(scene) {
      const pid = scene.clientPids[scene.random.below(scene.clientPids.length)];
      if (pid === undefined) return;
      process.kill(pid, "SIGSTOP");
      await last(scene, 2000, 4000);
      process.kill(pid, "SIGCONT");
    },
  },
];
