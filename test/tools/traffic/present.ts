import { setTimeout as delay } from "node:timers/promises";
import type { Aging } from "./aging.ts";
import type { Caller } from "./caller.ts";
import type { Operation, Planner } from "./plan.ts";
import type { Ledger } from "./planted.ts";
import { untilTrue } from "./until.ts";

const TICK_MS = 500;

/** The traffic of the present, in real time. */
export interface PresentOptions {
  /** Of the running server. */
  readonly caller: Caller;
  readonly planner: Planner;
  readonly ledger: Ledger;
  readonly aging: Aging;
  readonly durationMs: number;
  /** Operations of the whole time. */
  readonly operations: number;
  readonly signal: AbortSignal;
}

/** No day of the week: the present has no redrive. */
const NO_WEEKDAY = -1;

/**
 * Sends a day's claims to the running server within some seconds, evenly, and retries in the second half.
 * Returns when the server has stored its counts.
 */
export async function liveInPresent(options: PresentOptions): Promise<void> {
  const { caller, planner, ledger, aging, durationMs, operations, signal } = options;
  const claimsBefore = ledger.claims;
  const { morning, atOnce, retries } = planner.planDay({ weekday: NO_WEEKDAY, operations });
  const perform = async (group: readonly Operation[], latenessS: number) => {
    await caller.perform(group);
    ledger.note(group, { agoS: 0, latenessS: () => latenessS });
  };
  const halfTicks = Math.max(1, Math.floor(durationMs / TICK_MS / 2));
  for (let tick = 0; tick < 2 * halfTicks; tick++) {
    const isFirstHalf = tick < halfTicks;
    await perform(partOf(isFirstHalf ? morning : retries, tick % halfTicks, halfTicks), durationMs / 2000);
    if (tick === halfTicks - 1) await perform(atOnce, 0);
    await delay(TICK_MS, undefined, { signal });
  }
  await untilTrue(async () => (await aging.countedClaims()) === ledger.claims - claimsBefore, signal);
}

function partOf<Item>(items: readonly Item[], part: number, parts: number): readonly Item[] {
  return items.slice(
    Math.floor((items.length * part) / parts),
    Math.floor((items.length * (part + 1)) / parts),
  );
}
