import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { runSlice } from "../load.ts";
import { type RedisProcess, startRedisProcess } from "../redis-process.ts";
import { percentile } from "../statistics.ts";
import { prepareReplays } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 64;
const KEYS = 5000;
/** Calls notice a fault in its first half second. */
const FAULT_MS = 2000;
const QUICK_FAULT_MS = 300;

/** Faults of Redis and their ends. */
const FAULTS: readonly (readonly [string, (redis: RedisProcess) => unknown])[] = [
  ["running", () => {}],
  ["flushed", (redis) => redis.flush()],
  ["frozen", (redis) => redis.freeze()],
  ["resumed", (redis) => redis.thaw()],
  ["killed", (redis) => redis.kill()],
  ["restarted", (redis) => redis.restart()],
];

/**
 * Measures replays while Redis is flushed, frozen, killed and restarted. A call that fails ends the bench; a
 * wrong answer is counted. The server keeps nothing in memory, so every replay asks Redis.
 */
export const measureRedisFaults: Figure = async (bench) => {
  const { rig, options, violations, progress } = bench;
  if (rig.redisProgram === undefined) return [];
  await using redis = await startRedisProcess(rig.redisProgram);
  await using station = await rig.startStation({ env: { REDIS_URL: redis.url, ONCEWARD_CACHE_MIB: "0" } });
  const target = oncewardTarget(station.client.calls, station.database);
  const replays = (await prepareReplays(target, KEYS, violations)).among(KEYS);
  const durationMs = options.quick ? QUICK_FAULT_MS : FAULT_MS;
  // Redis is asked where repeats are frequent.
  await runSlice(replays, { callers: CALLERS, durationMs }, bench.signal);
  const findings: Finding[] = [];
  for (const [fault, inflict] of FAULTS) {
    progress(`replays while Redis is ${fault}`);
    findings.push(await duringFault(bench, fault, replays, () => inflict(redis), durationMs));
  }
  return findings;
};

async function duringFault(
  { signal }: Bench,
  fault: string,
  replays: () => Promise<void>,
  inflict: () => unknown,
  durationMs: number,
): Promise<Finding> {
  const slice = runSlice(replays, { callers: CALLERS, durationMs }, signal);
  await Promise.all([slice, inflict()]);
  const { latenciesMs, perSecond } = await slice;
  return {
    figure: "P3",
    part: `redis ${fault}`,
    what: `p99 of replays, ${CALLERS} callers, Redis ${fault}, no memory cache`,
    value: percentile(latenciesMs, 0.99),
    unit: "ms",
    raw: {
      "p50 ms": percentile(latenciesMs, 0.5),
      "worst ms": latenciesMs.at(-1) ?? 0,
      "replays /s": perSecond,
    },
  };
}
