import { readConfig } from "../../../server/src/config/config.ts";
import { startServer } from "../../../server/src/replica/server.ts";
import { createLog } from "../../../server/src/telemetry/log.ts";
import type { Aging } from "./aging.ts";
import { createCaller } from "./caller.ts";
import type { DayPlan, Operation, Planner } from "./plan.ts";
import type { Ledger } from "./planted.ts";
import { untilTrue } from "./until.ts";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
/** From a day's first claims to the retries, and to what happens at noon. */
const RETRIES_AFTER_S = 120;
const NOON_AFTER_S = 3 * HOUR_S;

/** The past that is lived through before the present. */
export interface PastOptions {
  readonly databaseUrl: string;
  readonly pepper: string;
  readonly callerKey: string;
  readonly aging: Aging;
  readonly planner: Planner;
  readonly ledger: Ledger;
  readonly days: number;
  /** Operations per day. */
  readonly operations: number;
  readonly onDay: (day: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Lives through days: a replica of this process answers the claims of each day and counts them, and then the
 * time until the next claims passes in SQL. Everything that is counted, swept and sampled is so by the code
 * of the server.
 */
export async function liveThroughPast(options: PastOptions): Promise<void> {
  const { aging, planner, ledger, days, operations, onDay, signal } = options;
  await using replica = await startReplica(options);
  const caller = createCaller(replica.address, options.callerKey, signal);
  let placedClaims = ledger.claims;

  /** Waits for two whole turns of the sampler: in the first it reads what is new, in the second it looks claims up. */
  async function sampled(): Promise<void> {
    const turns = await replica.samplerTurns();
    await untilTrue(async () => (await replica.samplerTurns()) >= turns + 3, signal);
  }

  /** Waits until the claims are counted, and those of sampled keys looked up among the tombstones. */
  async function stored(): Promise<void> {
    await untilTrue(async () => (await aging.countedClaims()) === ledger.claims - placedClaims, signal);
    await sampled();
  }

  async function place(seconds: number): Promise<void> {
    await aging.placeHours(seconds);
    placedClaims = ledger.claims;
  }

  async function perform(group: readonly Operation[], agoS: number, latenessOf: (age: number) => number) {
    await caller.perform(group);
    ledger.note(group, { agoS, latenessS: (operation) => latenessOf(daysOld(operation)) });
  }

  const plans: DayPlan[] = [];
  /** How many days ago, counted from the newest planned day, a key was claimed first. */
  const daysOld = ({ key }: Operation) =>
    plans.findIndex(({ morning }) => morning.some((first) => first.key === key));

  for (let day = days; day >= 1; day--) {
    const morningAgoS = day * DAY_S;
    const noonAgoS = morningAgoS - NOON_AFTER_S;
    const weekday = new Date(Date.now() - noonAgoS * 1000).getUTCDay();
    const plan = planner.planDay({ weekday, operations });
    plans.unshift(plan);
    plans.length = Math.min(plans.length, MAX_REPEATED_DAYS);
    await perform(plan.morning, morningAgoS, () => 0);
    await perform(plan.atOnce, morningAgoS, () => 0);
    await stored();
    await aging.timePasses(RETRIES_AFTER_S);
    await perform(plan.retries, morningAgoS - RETRIES_AFTER_S, () => RETRIES_AFTER_S);
    await stored();
    await place(morningAgoS);
    await aging.timePasses(NOON_AFTER_S - RETRIES_AFTER_S);
    // A replica samples a namespace from the turn after its first keys ended: hours ago in the time that passed, just now on the clock.
    await sampled();
    await perform(plan.noon, noonAgoS, (old) => old * DAY_S + NOON_AFTER_S);
    await stored();
    await place(noonAgoS);
    await aging.placeDay(day);
    await aging.timePasses(DAY_S - NOON_AFTER_S);
    onDay(day);
  }
}

/** The planner repeats keys of today and of the three days before. */
const MAX_REPEATED_DAYS = 4;

interface Replica extends AsyncDisposable {
  readonly address: string;
  /** Returns how many turns the sampler of keys has taken. */
  samplerTurns(): Promise<number>;
}

async function startReplica({ databaseUrl, pepper }: PastOptions): Promise<Replica> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    ONCEWARD_API_KEY_PEPPER: pepper,
    ONCEWARD_LOG_LEVEL: "error",
    ONCEWARD_GRPC_PORT: "0",
    ONCEWARD_HTTP_PORT: "0",
    ONCEWARD_MANAGEMENT_PORT: "0",
    ONCEWARD_DRAIN_DELAY: "0s",
    ONCEWARD_DRAIN_TIMEOUT: "1s",
    ONCEWARD_USAGE_FLUSH: "100ms",
    // Aging sweeps. A copy in memory would not become older.
    ONCEWARD_SWEEP_INTERVAL: "1h",
    ONCEWARD_CACHE_MIB: "0",
  });
  const server = await startServer(config, createLog(config.ONCEWARD_LOG_LEVEL, process.stderr));
  const { grpcPort, managementPort } = server.addresses;
  return {
    address: `http://127.0.0.1:${grpcPort}`,
    async samplerTurns() {
      const metrics = await (await fetch(`http://127.0.0.1:${managementPort}/metrics`)).text();
      const [, turns] = TURNS.exec(metrics) ?? [];
      return Number(turns ?? 0);
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** Each turn of the sampler runs this statement. */
const TURNS = /^onceward_store_duration_seconds_count\{[^}]*statement="read_changed_samples"[^}]*\} (\d+)/m;
