import type { Logger } from "pino";
import { DEGRADED_REASONS, type DegradedReason } from "../domain/replica.ts";

/** When a degraded state begins and ends. */
export interface DegradedCondition {
  /** Returns whether the replica is degraded now; `active` shows whether the state has begun. */
  readonly holds: (active: boolean) => boolean;
  /** Consecutive looks at which the condition must hold before the state begins, or not hold before it ends. */
  readonly looks: number;
}

const LOOK_MS = 1000;

/** Creates the degraded states of a replica, none of which is active, and logs each that begins or ends. */
export function createDegradedStates(options: {
  readonly log: Logger;
  /** Interval between two checks of the conditions; only tests change it. */
  readonly lookMs?: number | undefined;
}) {
  const { log, lookMs = LOOK_MS } = options;
  const states = DEGRADED_REASONS.map((reason) => ({
    reason,
    active: false,
    /** Consecutive looks that contradicted `active`. */
    looks: 0,
  }));
  let timer: NodeJS.Timeout | undefined;

  function look(conditions: Readonly<Record<DegradedReason, DegradedCondition>>): void {
    for (const state of states) {
      const { reason, active } = state;
      const condition = conditions[reason];
      state.looks = condition.holds(active) === active ? 0 : state.looks + 1;
      if (state.looks < condition.looks) continue;
      state.active = !active;
      state.looks = 0;
      if (state.active) log.warn({ reason }, "the replica is degraded");
      else log.info({ reason }, "the replica is no longer degraded");
    }
  }

  return {
    /** Looks at the conditions at once, and then at each interval. */
    start(conditions: Readonly<Record<DegradedReason, DegradedCondition>>): void {
      look(conditions);
      timer = setInterval(look, lookMs, conditions).unref();
    },
    stop: () => clearInterval(timer),
    /** Returns whether each state is active. */
    active: () =>
      Object.fromEntries(states.map(({ reason, active }) => [reason, active])) as Record<
        DegradedReason,
        boolean
      >,
    /** Returns the active states. */
    reasons: () => states.filter(({ active }) => active).map(({ reason }) => reason),
  };
}
