import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readMetrics } from "../../helpers/servers/metrics.ts";
import type { Bench } from "./figure.ts";
import { runSlice } from "./load.ts";
import { number } from "./report.ts";
import { median } from "./statistics.ts";
import { FreshClaims } from "./target.ts";
import { oncewardTarget } from "./target-onceward.ts";

const CALLERS = 64;
const SAMPLES = 30;
const MIN_SLICE_MS = 1000;
/** A leak, or work that grows with stored data, exceeds this. */
const FLAT = 1.1;

/**
 * Measures `--soak 10m`: claims and completes for that long, and says whether memory and speed stay the same.
 */
export async function soak(bench: Bench, durationMs: number): Promise<void> {
  const { main, violations, signal, progress } = bench;
  const pairs = new FreshClaims(oncewardTarget(main.client.calls, main.database), violations);
  const sliceMs = Math.max(MIN_SLICE_MS, durationMs / SAMPLES);
  const collectGarbage = garbageCollector();
  const samples: Sample[] = [];
  const rates: number[] = [];
  for (let lastedMs = 0; lastedMs < durationMs; lastedMs += sliceMs) {
    const { perSecond } = await runSlice(pairs.pair, { callers: CALLERS, durationMs: sliceMs }, signal);
    rates.push(perSecond);
    collectGarbage();
    const sample = await takeSample(bench);
    samples.push(sample);
    const memory = Object.entries(sample).map(([name, mib]) => `${name} ${number(mib)} MiB`);
    progress(`${number(perSecond)} pairs/s, ${memory.join(", ")}`);
  }
  await pairs.verify();
  for (const name of ["client heap", "client RSS", "server heap", "server RSS"] as const) {
    // Memory just after a collection: how much garbage the server has at a sample's instant is random.
    const growth = growthOf(
      samples.map((sample) => sample[name]),
      (values) => Math.min(...values),
    );
    report(name, growth, growth <= FLAT);
  }
  const change = growthOf(rates, median);
  report("pairs/s", change, change >= 1 / FLAT);
}

function report(what: string, growth: number, flat: boolean): void {
  console.log(`${what}: last third ÷ middle third ${number(growth)}, ${flat ? "flat" : "NOT FLAT"}`);
}

type Sample = Readonly<Record<"client heap" | "client RSS" | "server heap" | "server RSS", number>>;

const MIB = 2 ** 20;

/** Collects the garbage of this process, which is the client's too; the server's is collected by V8. */
function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

async function takeSample({ main }: Bench): Promise<Sample> {
  const { heapUsed, rss } = process.memoryUsage();
  const metrics = await readMetrics(main.server);
  return {
    "client heap": heapUsed / MIB,
    "client RSS": rss / MIB,
    "server heap": (metrics.get("nodejs_heap_size_used_bytes") ?? Number.NaN) / MIB,
    "server RSS": await main.server.rssMb(),
  };
}

/** The first third does not count: caches fill in it. */
function growthOf(values: readonly number[], typical: (values: readonly number[]) => number): number {
  const third = Math.floor(values.length / 3);
  return typical(values.slice(2 * third)) / typical(values.slice(third, 2 * third));
}
