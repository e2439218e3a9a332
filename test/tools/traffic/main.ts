import { readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { printable } from "../../../server/src/core/commands/printable.ts";
import { findDevServer } from "./dev-server.ts";
import { describePlanted } from "./report.ts";
import { plantTraffic } from "./run.ts";

/** Exits 1 if that failed, and 130 if it was interrupted. */
const USAGE = `npm run lab -- traffic [options]: plants traffic with known truths in the server that npm start runs.
  --seed N        the same seed plants the same traffic; default: random
  --days N        how many days the traffic goes back, 8 to 80; default: 28
  --operations N  operations a day, 50 to 5000; default: 400
  --live SECONDS  how long calls are made at the end, 1 to 300; default: 10
  --address URL   the server; default: http://127.0.0.1:50051
  --json          print what was planted as JSON`;

function readOptions() {
  const { values } = readCommandLine(USAGE, {
    options: {
      seed: { type: "string" },
      days: { type: "string", default: "28" },
      operations: { type: "string", default: "400" },
      live: { type: "string", default: "10" },
      address: { type: "string", default: `http://127.0.0.1:${process.env.ONCEWARD_GRPC_PORT || "50051"}` },
      json: { type: "boolean", default: false },
    },
  });
  const number = (option: "seed" | "days" | "operations" | "live", min: number, max: number) =>
    wholeNumber(USAGE, option, values[option] ?? "", min, max);
  return {
    ...values,
    seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : number("seed", 0, 2 ** 32 - 1),
    // Late repeats of a week are seen once keys have been sampled for a week longer.
    days: number("days", 8, 80),
    operations: number("operations", 50, 5000),
    liveMs: 1000 * number("live", 1, 300),
  };
}

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
  await plant(readOptions());
} catch (error) {
  console.error(printable(`${error instanceof Error ? error.message : error}`));
  process.exitCode = interruption.signal.aborted ? 130 : 1;
}

async function plant({ address, json, ...options }: ReturnType<typeof readOptions>): Promise<void> {
  await using dev = await findDevServer(process.cwd(), address);
  const signal = AbortSignal.any([interruption.signal, limit.signal]);
  const planted = await plantTraffic(dev, options, (line) => console.error(line), signal);
  for (const line of json ? [JSON.stringify(planted, undefined, 2)] : describePlanted(planted))
    console.log(printable(line));
}
