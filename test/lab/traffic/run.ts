import { setTimeout as delay } from "node:timers/promises";
import { createRandom } from "../../support/random.ts";
import { type Aging, createAging } from "./aging.ts";
import { type Caller, createCaller } from "./caller.ts";
import type { DevServer } from "./dev-server.ts";
import { liveThroughPast } from "./past.ts";
import { createPlanner, type Operation, type Planner } from "./plan.ts";
import { createLedger, type Ledger, type PlantedNamespace } from "./planted.ts";
import { prepareTrafficTenant } from "./tenant.ts";
import { untilTrue } from "./until.ts";

const TICK_MS = 500;

/** The traffic of the present, in real time. */
interface PresentOptions {
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
async function liveInPresent(options: PresentOptions): Promise<void> {
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

/** The size of a run. */
export interface TrafficOptions {
  readonly seed: number;
  /** Days of the past. */
  readonly days: number;
  /** Operations per day. */
  readonly operations: number;
  /** The time in which the running server gets traffic, in milliseconds. */
  readonly liveMs: number;
}

/** What a run planted, and where. */
export interface Planted extends TrafficOptions {
  readonly tenant: string;
  readonly adminKeyFile: string;
  readonly address: string;
  readonly namespaces: readonly PlantedNamespace[];
}

/** Plants the traffic. @param onProgress is called with a line for people. */
export async function plantTraffic(
  dev: DevServer,
  options: TrafficOptions,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<Planted> {
  const { seed, days, operations, liveMs } = options;
  const { id, name, callerKey, adminKeyFile } = await prepareTrafficTenant(dev);
  onProgress(
    `Tenant ${name}: ${days} days of ${operations} operations, whose times are moved back in SQL ...`,
  );
  const planner = createPlanner(createRandom(seed));
  const ledger = createLedger();
  const aging = createAging(dev.pool, id, dev.pepper);
  const common = { planner, ledger, aging, operations, signal };
  await liveThroughPast({
    ...common,
    databaseUrl: dev.databaseUrl,
    pepper: dev.pepper,
    callerKey,
    days,
    onDay: (day) => {
      if (day % DAYS_PER_LINE === 1) onProgress(`  ${day === 1 ? "yesterday" : `${day} days ago`}`);
    },
  });
  await aging.forgetMinutes();
  onProgress(`The present: ${liveMs / 1000} s of traffic at ${dev.address} ...`);
  const caller = createCaller(dev.address, callerKey, signal);
  await liveInPresent({ ...common, caller, durationMs: liveMs });
  const planted = { tenant: name, adminKeyFile, address: dev.address, namespaces: ledger.planted() };
  return { ...options, ...planted };
}

const DAYS_PER_LINE = 7;
