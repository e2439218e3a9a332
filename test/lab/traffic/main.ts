import { formatDurationMs } from "@onceward/words/durations";
import { readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { printable } from "../../../server/src/commands/printable.ts";
import { findDevServer } from "./dev-server.ts";
import type { PlantedNamespace } from "./planted.ts";
import { type Planted, plantTraffic } from "./run.ts";

type Cell = string | number;

const COLUMNS: readonly (readonly [title: string, value: (namespace: PlantedNamespace) => Cell])[] = [
  ["namespace", ({ name, declared }) => (declared ? name : `${name} (undeclared)`)],
  ["retention", ({ keyRetentionS }) => formatDurationMs(1000 * keyRetentionS)],
  ["claims", ({ claims }) => claims],
  ["repeats", (namespace) => repeatsOf(namespace, false)],
  ["late repeats", (namespace) => repeatsOf(namespace, true)],
  ["latest after", ({ repeats }) => duration(Math.max(0, ...repeats.map(({ latenessS }) => latenessS)))],
  ["retries under new keys", ({ mintedKeys }) => mintedKeys.reduce((sum, { keys }) => sum + keys, 0)],
  ["equal orders", ({ lookAlikes }) => lookAlikes],
  ["ambiguous", ({ ambiguous }) => ambiguous],
];

/** Returns the number of planted repeats that were granted (late), or of those that were recognised. */
function repeatsOf({ repeats }: PlantedNamespace, late: boolean): number {
  return repeats.filter((each) => each.late === late).reduce((sum, each) => sum + each.repeats, 0);
}

function duration(seconds: number): string {
  return formatDurationMs(1000 * Math.round(seconds));
}

const CLI = "npm run --silent onceward --";

/** Returns what was planted as a table, and how to look at it. */
function describePlanted(planted: Planted): readonly string[] {
  const { tenant, days, seed, operations, address, adminKeyFile, namespaces } = planted;
  const rows = [COLUMNS.map(([title]) => title), ...namespaces.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  return [
    "",
    `Planted in tenant ${tenant}:`,
    "",
    ...rows.map((row) => row.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join("  ")),
    "",
    ...namespaces.map(({ name, story }) => `- ${name}: ${story}.`),
    "",
    `The claims of the last ${days} days were made now, by a replica of this command that counted and swept them;`,
    "the time between them passed by moving the tenant's times back in SQL. Only the last claims were made in real time.",
    `--seed ${seed} --days ${days} --operations ${operations} repeats it in a tenant of its own, which the run after it deletes.`,
    "",
    `Sign in to the console with the key in ${adminKeyFile}.`,
    "",
    "Compare with what is found:",
    "",
    `${CLI} login traffic --address ${address} --api-key-stdin < ${adminKeyFile}`,
    ...["payments", "webhooks", "orders"].map((name) => `${CLI} advice ${name}`),
    `${CLI} keys quality emails`,
    `${CLI} records list --state ambiguous --oldest-first`,
    `${CLI} namespaces undeclared`,
  ];
}

function cellsOf(namespace: PlantedNamespace): Cell[] {
  return COLUMNS.map(([, value]) => value(namespace));
}

function pad(cell: Cell, width: number, column: number): string {
  return column === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
}

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
