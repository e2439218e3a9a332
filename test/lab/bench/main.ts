import { writeFile } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import { type Bench, type Figure, FULL_PACE, QUICK_PACE } from "./figure.ts";
import { measureAdministration } from "./figures/administration.ts";
import { measureBegin, measureDedupe } from "./figures/beside-pairs.ts";
import { measureCitus } from "./figures/citus.ts";
import { measureClaims } from "./figures/claims.ts";
import { measureFairness } from "./figures/fairness.ts";
import { measureFullTable } from "./figures/full-table.ts";
import { measureHostility } from "./figures/hostility.ts";
import { measureHttpProxy } from "./figures/http-proxy.ts";
import { measureLone } from "./figures/lone.ts";
import { measureMemory } from "./figures/memory.ts";
import { measureOverhead } from "./figures/overhead.ts";
import { measurePairs } from "./figures/pairs.ts";
import { measureProcessorTime } from "./figures/processor-time.ts";
import { measureReplays } from "./figures/replays.ts";
import { measureSweeping } from "./figures/sweeping.ts";
import { measureUnary } from "./figures/unary.ts";
import { measureWaiting } from "./figures/waiting.ts";
import { FIGURES, type FigureId, type Finding, meetsBar } from "./finding.ts";
import { measureCommitMs } from "./limit.ts";
import { type BenchOptions, HELP, readOptions } from "./options.ts";
import { markdownTable, number, plainTable, resultJson } from "./report.ts";
import { startRig } from "./rig.ts";
import { measureSizing } from "./sizing.ts";
import { createViolations } from "./violations.ts";

/** A program that measures one or more figures. */
interface Measurement {
  readonly of: readonly FigureId[];
  readonly figure: Figure;
}

/** What a run measured, and which figures it could not measure. */
interface Measured {
  /** In the order of the figures. */
  readonly findings: readonly Finding[];
  /** A line for each program that failed. */
  readonly failures: readonly string[];
}

/** Measures the chosen figures. One that fails costs no other, and an interruption costs only those that were not measured yet. */
async function measureAll(measurements: readonly Measurement[], bench: Bench): Promise<Measured> {
  const { options, signal } = bench;
  const findings: Finding[] = [];
  const failures: string[] = [];
  for (const { of, figure } of measurements) {
    if (!of.some((id) => options.only.has(id))) continue;
    try {
      signal.throwIfAborted();
      findings.push(...(await figure(bench)));
    } catch (error) {
      failures.push(`${of.join(", ")}: ${error instanceof Error ? error.message : error}`);
    }
  }
  const chosen = findings.filter((finding) => options.only.has(finding.figure));
  return { findings: chosen.sort((a, b) => FIGURES.indexOf(a.figure) - FIGURES.indexOf(b.figure)), failures };
}

/**
 * `npm run bench`: measures the performance promises beside the code that a user would write instead. README.md has the
 * codes of its exit, options.ts the options.
 */
const MEASUREMENTS: readonly Measurement[] = [
  { of: ["P1", "P6"], figure: measureClaims },
  { of: ["P2"], figure: measurePairs },
  { of: ["P3"], figure: measureReplays },
  { of: ["P4"], figure: measureUnary },
  { of: ["P5", "P24"], figure: measureLone },
  { of: ["P7"], figure: measureFullTable },
  { of: ["P8"], figure: measureSweeping },
  { of: ["P9"], figure: measureMemory },
  { of: ["P10"], figure: measureFairness },
  { of: ["P11"], figure: measureWaiting },
  { of: ["P12"], figure: measureOverhead },
  { of: ["P13"], figure: measureHostility },
  { of: ["P14"], figure: measureAdministration },
  { of: ["P17"], figure: measureCitus },
  { of: ["P18"], figure: measureProcessorTime },
  { of: ["P19"], figure: measureHttpProxy },
  { of: ["P20"], figure: measureDedupe },
  { of: ["P21"], figure: measureBegin },
];

// A second Ctrl-C is ignored: it would leave a PostgreSQL running.
const interruption = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}; everything is removed`)));
}

/** The exit code of a run that lacks a figure. */
const NOT_MEASURED = 2;

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) console.log(HELP);
  else await run(options);
} catch (error) {
  const reason = interruption.signal.aborted ? interruption.signal.reason : error;
  console.error(`\n${reason instanceof Error ? reason.message : reason}`);
  process.exitCode = interruption.signal.aborted ? 130 : (process.exitCode ?? NOT_MEASURED);
}

async function run(options: BenchOptions): Promise<void> {
  const limit = new AbortController();
  const limitMs = longestMs(options);
  setTimeout(() => limit.abort(new Error(`not finished after ${limitMs / 60_000} min`)), limitMs).unref();
  const signal = AbortSignal.any([interruption.signal, limit.signal]);
  const startedAtMs = performance.now();
  const progress = (what: string) => {
    console.log(`${String(Math.round((performance.now() - startedAtMs) / 1000)).padStart(5)} s  ${what}`);
  };

  progress("starting Postgres, Redis and a server");
  await using rig = await startRig(options.serverEnv);
  signal.throwIfAborted();
  await using main = await rig.startStation();
  console.log(machine(rig.postgresVersion, rig.redisProgram, await measureCommitMs(main.database)));
  const violations = createViolations();
  const pace = options.quick ? QUICK_PACE : FULL_PACE;
  const bench: Bench = { rig, main, options, violations, signal, pace, progress };

  if (options.sizing) await measureSizing(bench);
  else await report(await measureAll(MEASUREMENTS, bench), bench);
  for (const example of violations.examples) console.error(`WRONG: ${example}`);
  if (violations.count > 0) process.exitCode = 1;
  signal.throwIfAborted();
}

async function report({ findings, failures }: Measured, { options, violations }: Bench): Promise<void> {
  console.log(`\n${options.markdown ? markdownTable(findings) : plainTable(findings)}\n`);
  const missed = findings.filter((finding) => meetsBar(finding) === false).length;
  for (const failure of failures) console.error(`NOT MEASURED: ${failure}`);
  if (failures.length > 0) process.exitCode = NOT_MEASURED;
  if (options.quick) console.log("Quick: too short to judge by.");
  console.log(`${missed} bars missed, ${violations.count} wrong answers.`);
  await writeFile(options.out, `${JSON.stringify(resultJson(findings, violations.count), null, 2)}\n`);
  console.log(`Written to ${options.out}.`);
}

function machine(postgresVersion: string, redisProgram: string | undefined, commitMs: number): string {
  const cores = `${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})`;
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const redis = redisProgram ?? "without Redis (not installed)";
  const programs = `Node ${process.version}, PostgreSQL ${postgresVersion} with its defaults, ${redis}`;
  return `${cores}, ${memory}, ${programs}\na lone commit takes ${number(commitMs)} ms`;
}

/** Returns after how long a run must have hung, in milliseconds. */
function longestMs({ quick, rows }: BenchOptions): number {
  if (quick) return 4 * 60_000;
  // Ten million rows are filled in about ten minutes.
  return (25 + (rows / 1e6) * 3) * 60_000;
}
