import { parseArgs } from "node:util";
import { findDevServer } from "./dev-server.ts";
import { describePlanted } from "./report.ts";
import { plantTraffic } from "./run.ts";

/**
 * `npm run demo:traffic [-- --seed N] [--days N] [--operations N] [--live SECONDS] [--address URL] [--json]`:
 * plants traffic with known truths in the server that `npm start` runs. Exits 1 if that failed, and 130 if it
 * was interrupted.
 */
const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    days: { type: "string", default: "28" },
    operations: { type: "string", default: "400" },
    live: { type: "string", default: "10" },
    address: { type: "string", default: `http://127.0.0.1:${process.env.ONCEWARD_GRPC_PORT || "50051"}` },
    json: { type: "boolean", default: false },
  },
});

/** The default run takes about a minute on an idle machine; this is reached if it hangs. */
const LIMIT_MS = 10 * 60_000;

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () =>
    interruption.abort(new Error(`interrupted by ${signal}; run it again to start over`)),
  );
}
const limit = new AbortController();
setTimeout(() => limit.abort(new Error(`not finished after ${LIMIT_MS / 60_000} min`)), LIMIT_MS).unref();

try {
  const options = {
    seed:
      values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : wholeNumber("seed", 0, 2 ** 32 - 1),
    // Late repeats of a week are seen once keys have been sampled for a week longer.
    days: wholeNumber("days", 8, 80),
    operations: wholeNumber("operations", 50, 5000),
    liveMs: 1000 * wholeNumber("live", 1, 300),
  };
  await using dev = await findDevServer(process.cwd(), values.address);
  const signal = AbortSignal.any([interruption.signal, limit.signal]);
  const planted = await plantTraffic(dev, options, (line) => console.error(line), signal);
  for (const line of values.json ? [JSON.stringify(planted, undefined, 2)] : describePlanted(planted))
    console.log(line);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = interruption.signal.aborted ? 130 : 1;
}

function wholeNumber(option: "seed" | "days" | "operations" | "live", min: number, max: number): number {
  const text = values[option] ?? "";
  if (/^\d{1,10}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
  throw new Error(`--${option} must be a whole number from ${min} to ${max}`);
}
