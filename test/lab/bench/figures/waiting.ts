import { readMetrics } from "../../../support/servers/metrics.ts";
import type { Bench, Figure } from "../figure.ts";
import type { Station } from "../rig.ts";
import { ascending, percentile } from "../statistics.ts";
import { freshKeys, payloadOf } from "../target.ts";
import { openUnaryTarget, type UnaryTarget } from "../target-unary.ts";

const WAITERS = 10_000;
const QUICK_WAITERS = 500;
/** Completed one after another, `APART_MS` apart. */
const COMPLETED = 500;
const QUICK_COMPLETED = 100;
const APART_MS = 5;
const WAIT_S = 60;
const OPENING_LIMIT_MS = 20_000;

/**
 * Measures P11, calls that wait for a record: the statements that they cost, and how soon they are answered.
 */
export const measureWaiting: Figure = async (bench) => {
  const { rig, options, progress, signal } = bench;
  await using station = await rig.startStation();
  await using target = await openUnaryTarget(station);
  const count = options.quick ? QUICK_WAITERS : WAITERS;
  progress(`${count} waiters`);
  const held = await claimAll(target, count);
  const waiters = new Map<string, Promise<boolean>>();
  for (const key of held.keys()) waiters.set(key, ignored(target.claimWaiting(key, WAIT_S)));
  await untilWaiting(station, count, signal);
  const statementsPerSecond = await measureStatements(station, options.quick ? 1500 : 5000);
  const keys = [...held.keys()].slice(0, options.quick ? QUICK_COMPLETED : COMPLETED);
  const delaysMs = ascending(await completeEach(bench, target, keys, held, waiters));
  return [
    {
      figure: "P11",
      part: "statements",
      what: `statements/s that ${count.toLocaleString("en-US")} waiters cost`,
      value: statementsPerSecond,
      unit: "/s",
      bar: { atMost: 20 },
      raw: {},
    },
    {
      figure: "P11",
      part: "wakeUp",
      what: "p99 from sending Complete to the waiter's answer",
      value: percentile(delaysMs, 0.99),
      unit: "ms",
      bar: { atMost: 25 },
      raw: { "p50 ms": percentile(delaysMs, 0.5), waiters: count },
    },
  ];
};

async function claimAll(target: UnaryTarget, count: number): Promise<ReadonlyMap<string, bigint>> {
  const held = new Map<string, bigint>();
  const keys = Array.from({ length: count }, freshKeys());
  await Promise.all(
    keys.map(async (key) => {
      const token = await target.claim(key);
      if (token === undefined) throw new Error(`the fresh key ${key} was not granted`);
      held.set(key, token);
    }),
  );
  return held;
}

/** Handles the rejection of a waiter whose answer is not needed: most end with the server. */
function ignored(waiter: Promise<boolean>): Promise<boolean> {
  waiter.catch(() => {});
  return waiter;
}

async function untilWaiting({ server }: Station, count: number, signal: AbortSignal): Promise<void> {
  const giveUpAtMs = performance.now() + OPENING_LIMIT_MS;
  for (;;) {
    signal.throwIfAborted();
    const waiting = (await readMetrics(server)).get("onceward_waiters") ?? 0;
    if (waiting === count) return;
    if (performance.now() > giveUpAtMs) throw new Error(`${waiting} calls wait instead of ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const STATEMENTS = "onceward_store_duration_seconds_count";

async function measureStatements({ server }: Station, durationMs: number): Promise<number> {
  const count = async () =>
    [...(await readMetrics(server))]
      .filter(([name]) => name.startsWith(STATEMENTS))
      .reduce((sum, [, value]) => sum + value, 0);
  const before = await count();
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  return ((await count()) - before) / (durationMs / 1000);
}

async function completeEach(
  { violations, signal }: Bench,
  target: UnaryTarget,
  keys: readonly string[],
  held: ReadonlyMap<string, bigint>,
  waiters: ReadonlyMap<string, Promise<boolean>>,
): Promise<readonly number[]> {
  const delays: Promise<number>[] = [];
  for (const key of keys) {
    signal.throwIfAborted();
    const sentAtMs = performance.now();
    const told = waiters.get(key)?.then((completed) => {
      if (!completed) violations.add(`the waiter on ${key} was not answered Completed`);
      return performance.now() - sentAtMs;
    });
    if (told !== undefined) delays.push(told);
    await target.complete(key, held.get(key) ?? 0n, payloadOf(key));
    await new Promise((resolve) => setTimeout(resolve, APART_MS));
  }
  return Promise.all(delays);
}
