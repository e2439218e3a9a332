import { createRandom } from "../../support/random.ts";
import { type ClockMove, nowMs, type TenantMove } from "../history/operation.ts";
import type { Fault, Scene, Victim } from "./faults/fault.ts";
import type { ScheduledFault } from "./schedule.ts";

/** A fault that happened, with its victim; times are on the clock of histories. */
export interface Injection extends Victim {
  readonly fault: string;
  readonly target: Fault["target"];
  readonly startedAtMs: number;
  readonly healedAtMs: number;
}

/** The outcome of a schedule. */
export interface Injections {
  readonly injections: readonly Injection[];
  /** Faults that could not be injected or healed. */
  readonly failures: readonly string[];
}

/**
 * Injects the faults of a schedule; resolves when all have healed, early if interrupted. On a busy machine faults that wait for
 * their turn may not begin before the run is over: they are left out, so that a run does not last several times as long as it was to.
 */
export async function injectFaults(
  schedule: readonly ScheduledFault[],
  faults: readonly Fault[],
  scene: Omit<Scene, "random" | "onVictim">,
  onFault: (what: string) => void,
  isOver: () => boolean = () => false,
): Promise<Injections> {
  const injections: Injection[] = [];
  const failures: string[] = [];
  const turns = new Map<Fault["target"], Promise<void>>();
  const originMs = nowMs();

  async function inject(fault: Fault, seed: number): Promise<void> {
    if (scene.signal.aborted) return;
    if (isOver()) {
      onFault(`${fault.name} is left out: the run is over`);
      return;
    }
    onFault(fault.name);
    const startedAtMs = nowMs();
    let victim: Victim = {};
    const onVictim = (hit: Victim) => {
      victim = hit;
    };
    try {
      await fault.inject({ ...scene, random: createRandom(seed), onVictim });
    } catch (error) {
      failures.push(`${fault.name}: ${error instanceof Error ? error.message : error}`);
    }
    const { name, target } = fault;
    injections.push({ fault: name, target, ...victim, startedAtMs, healedAtMs: nowMs() });
  }

  for (const { atMs, fault: name, seed } of schedule) {
    await untilMs(originMs + atMs, scene.signal);
    const fault = faults.find((candidate) => candidate.name === name);
    if (fault === undefined) throw new Error(`no fault is called ${name}`);
    const before = turns.get(fault.target) ?? Promise.resolve();
    turns.set(
      fault.target,
      before.then(() => inject(fault, seed)),
    );
  }
  await Promise.all(turns.values());
  return { injections, failures };
}

/** Returns the intervals in which the database's clock may have been ahead. */
export function clockMovesOf(injections: readonly Injection[]): ClockMove[] {
  return injections.flatMap(({ clockAheadMs: aheadMs, retentionAheadMs, startedAtMs, healedAtMs }) =>
    aheadMs === undefined
      ? []
      : [
          {
            fromMs: startedAtMs,
            toMs: healedAtMs,
            aheadMs,
            ...(retentionAheadMs !== undefined && { retentionAheadMs }),
          },
        ],
  );
}

/** Returns the intervals in which a tenant was on its way. */
export function tenantMovesOf(injections: readonly Injection[]): TenantMove[] {
  return injections.flatMap(({ tenant, startedAtMs: fromMs, healedAtMs: toMs }) =>
    tenant === undefined ? [] : [{ tenant, fromMs, toMs }],
  );
}

/** Resolves at an instant of the clock of histories, or when the signal aborts. */
export function untilMs(instantMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, instantMs - nowMs()));
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
