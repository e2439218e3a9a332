import { createRandom } from "../../helpers/random.ts";
import { createAging } from "./aging.ts";
import { createCaller } from "./caller.ts";
import type { DevServer } from "./dev-server.ts";
import { liveThroughPast } from "./past.ts";
import { createPlanner } from "./plan.ts";
import { createLedger, type PlantedNamespace } from "./planted.ts";
import { liveInPresent } from "./present.ts";
import { prepareTrafficTenant } from "./tenant.ts";

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
  onProgress(`The present: ${liveMs / 1000} s of traffic at ${dev.address} ...`);
  const caller = createCaller(dev.address, callerKey, signal);
  await liveInPresent({ ...common, caller, durationMs: liveMs });
  const planted = { tenant: name, adminKeyFile, address: dev.address, namespaces: ledger.planted() };
  return { ...options, ...planted };
}

const DAYS_PER_LINE = 7;
