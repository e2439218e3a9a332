import type { Random } from "../../demo/random.ts";
import type { Replica } from "../replica.ts";
import type { Rig } from "../rig.ts";

/** Whom a fault hits, where that is not everybody. */
export interface Victim {
  readonly replica?: string;
  readonly client?: string;
}

/** A process of the load. */
export interface ClientProcess {
  readonly name: string;
  readonly pid: number;
}

/** What a fault has at hand. */
export interface Scene {
  readonly rig: Rig;
  /** The fault's own: what it draws does not depend on what else happens. */
  readonly random: Random;
  readonly clients: readonly ClientProcess[];
  /** To be told whom it hits. */
  readonly onVictim: (victim: Victim) => void;
  /** Aborted when the run is interrupted: a fault then heals at once. */
  readonly signal: AbortSignal;
}

/**
 * Something that goes wrong, and is put right again.
 *
 * `inject` resolves once it has healed, also when it fails: when what was killed says that it serves, and from when on the
 * service has nothing to wait for. Faults of one `target` take turns: what is killed can't be
 * frozen. Those of different targets may overlap.
 */
export interface Fault {
  readonly name: string;
  readonly target: "postgres" | "rows" | "redis" | "replica" | "client";
  inject(scene: Scene): Promise<void>;
  /** Why it can't be injected here; undefined: it can. */
  whyNot?(rig: Rig): Promise<string | undefined>;
}

/** Any one of the replicas, which is the fault's victim. */
export function anyReplica({ rig, random, onVictim }: Scene): Replica {
  const replica = rig.replicas[random.below(rig.replicas.length)];
  if (replica === undefined) throw new Error("there are no replicas");
  onVictim({ replica: replica.name });
  return replica;
}

/** Some time, in which the fault lasts; over at once when the run is interrupted. */
export async function last({ random, signal }: Scene, fromMs: number, toMs = fromMs): Promise<void> {
  const ms = fromMs + random.below(toMs - fromMs + 1);
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
