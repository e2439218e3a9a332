import type { ProxyMode } from "../../../support/network/tcp-proxy.ts";
import { anyReplica, type Fault, last, type Scene } from "./fault.ts";

/** Faults of the network to Postgres, of one replica or of all. */
export const POSTGRES_NETWORK_FAULTS: readonly Fault[] = [
  networkFault("postgres-reply-lost", "lose-replies", 300, 1000),
  networkFault("postgres-blackhole", "swallow", 1500, 4000),
  networkFault("postgres-reset", "reset", 300, 1000),
  networkFault("postgres-one-byte-slices", "slice", 1000, 3000),
  networkFault("postgres-slow", "delay", 1000, 3000),
  networkFault("postgres-refused", "refuse", 500, 2000),
];

function networkFault(name: string, mode: ProxyMode, fromMs: number, toMs: number): Fault {
  return {
    name,
    target: "postgres",
    async inject(scene) {
      const proxies = someReplicas(scene).map(({ toPostgres }) => toPostgres);
      for (const proxy of proxies) proxy.setMode(mode);
      await last(scene, fromMs, toMs);
      for (const proxy of proxies) {
        proxy.setMode("forward");
        // Open connections lack bytes and can't be used again.
        if (mode === "swallow") proxy.cut();
      }
    },
  };
}

function someReplicas(scene: Scene) {
  return scene.random.below(2) === 0 ? [anyReplica(scene)] : scene.rig.replicas;
}
