import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readMetrics } from "../helpers/servers/metrics.ts";
import type { Bench } from "./figure.ts";
import { runSlice } from "./load.ts";
import { number } from "./report.ts";
import { median } from "./statistics.ts";
import { FreshClaims } from "./target.ts";
import { oncewardTarget } from "./target-onceward.ts";

const CALLERS = 64;
const SAMPLES = 30;
const MIN_SLICE_MS = 1000;
/** A leak does not stop at this, nor does what takes longer the more of it there is. */
const FLAT = 1.1;

/** `--soak 10m`: claims and completes for so long, and says whether memory and speed stay what they are. */
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
    // What is left when garbage has just gone: how much of it the server has at a sample's moment is chance.
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

/** Of this process, which is the client's, too; the server collects its own when it sees fit. */
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

/** Caches fill in the first third, which doesn't count. */
function growthOf(values: readonly number[], typical: (values: readonly number[]) => number): number {
  const third = Math.floor(values.length / 3);
  return typical(values.slice(2 * third)) / typical(values.slice(third, 2 * third));
}
