import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../../../support/random.ts";
import { nowMs, type Restore } from "../../history/operation.ts";
import type { Replica } from "../replica.ts";
import type { Rig } from "../rig.ts";

/** The replica, client or keys that a fault hits. It hits all of a kind that is undefined. */
export interface Victim {
  readonly replica?: string;
  readonly client?: string;
  /** Returns whether it hits a key. */
  readonly keys?: (key: string) => boolean;
  /** Returns whether it moves a key: too few keys to time a recovery by, so all count for that. */
  readonly movedKeys?: (key: string) => boolean;
  /** How far it sets the database's clock forward. */
  readonly clockAheadMs?: number;
  /** As ClockMove. */
  readonly retentionAheadMs?: number;
  /** When the database was copied, and when the copy took its place. */
  readonly restore?: Restore;
  /** The tenant that it moves, which is refused meanwhile. */
  readonly tenant?: string;
  /** Its own calls, which are judged, too. */
  readonly journalPath?: string;
}

/** A process of the load. */
export interface ClientProcess {
  readonly name: string;
  readonly pid: number;
}

/** The parameters of a fault. */
export interface Scene {
  readonly rig: Rig;
  /** The fault's own, so that its choices do not depend on other events. */
  readonly random: Random;
  readonly clients: readonly ClientProcess[];
  /** Called with the victim. */
  readonly onVictim: (victim: Victim) => void;
  /** Aborted when the run is interrupted; a fault then heals at once. */
  readonly signal: AbortSignal;
}

/**
 * Something that breaks and heals.
 *
 * `inject` resolves once the fault has healed, also when it fails: when a killed process serves again, and
 * the service has nothing left to wait for. Faults of one `target` take turns, because a killed process can't
 * be frozen. Faults of different targets may overlap.
 */
export interface Fault {
  readonly name: string;
  readonly target: "postgres" | "rows" | "redis" | "replica" | "client" | "tenant";
  inject(scene: Scene): Promise<void>;
  /** Returns why it can't be injected here; undefined: it can. */
  whyNot?(rig: Rig): Promise<string | undefined>;
}

/** Picks a replica as the fault's victim. */
export function anyReplica({ rig, random, onVictim }: Scene): Replica {
  const replica = rig.replicas[random.below(rig.replicas.length)];
  if (replica === undefined) throw new Error("there are no replicas");
  onVictim({ replica: replica.name });
  return replica;
}

/** Returns a fault of any one replica. */
export function replicaFault(
  name: string,
  inject: (replica: Replica, scene: Scene) => Promise<void>,
  whyNot: Fault["whyNot"] = async () => undefined,
): Fault {
  return { name, target: "replica", inject: (scene) => inject(anyReplica(scene), scene), whyNot };
}

/** Returns a fault of Postgres. */
export function postgresFault(
  name: string,
  inject: (postgres: Rig["postgres"], scene: Scene) => Promise<void>,
  whyNot: Fault["whyNot"] = async () => undefined,
): Fault {
  return { name, target: "postgres", inject: (scene) => inject(scene.rig.postgres, scene), whyNot };
}

/** Waits while the fault lasts; returns at once when the run is interrupted. */
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

const RETRY_MS = 500;
/** Several times as long as any other fault lasts, and an export, which takes half a minute, is repeated. */
const PATIENCE_MS = 300_000;

/** Repeats work that other faults prevent. @throws what it last threw, when the run is interrupted or after five minutes. */
export async function persist<T>({ signal }: Pick<Scene, "signal">, work: () => Promise<T>): Promise<T> {
  for (const startedAtMs = nowMs(); ; ) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || nowMs() - startedAtMs > PATIENCE_MS) throw error;
      await pause(RETRY_MS);
    }
  }
}
