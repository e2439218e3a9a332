import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findCitusPostgres } from "../../support/database/citus-binaries.ts";
import { nameOf } from "../history/operation.ts";
import { FAULTS, FAULTS_ON_CITUS } from "./faults/all.ts";
import type { Fault } from "./faults/fault.ts";
import { interruption, progress, runToEnd } from "./interruption.ts";
import { describeFailure } from "./judge.ts";
import { type ChaosOptions, readOptions } from "./options.ts";
import { describeRecovery, isLate } from "./recovery.ts";
import { formatReport, reportOf } from "./report.ts";
import { type Rig, startRig } from "./rig.ts";
import { type Round, runRound } from "./round.ts";

/**
 * `npm run chaos -- [--minutes 10] [--seed 42] [--faults a,b] [--replicas 3] [--out FILE]`: records histories
 * of the service under faults and judges them. `npm run chaos -- --citus` with the same options does
 * so on a Citus. Exits 1 on any violation or timeout, and 130 if it was
 * interrupted.
 */
const FAILURES_DIR = "chaos-failures";
const SHOWN_FAILURES = 5;

await runToEnd(() =>
  run(
    readOptions(process.argv.slice(2), {
      postgres: FAULTS.map(({ name }) => name),
      citus: FAULTS_ON_CITUS.map(({ name }) => name),
    }),
  ),
);

async function run(options: ChaosOptions): Promise<void> {
  const { seed, durationMs, replicas, out } = options;
  const binaries = options.citus ? await findCitusPostgres(process.env.PATH) : undefined;
  if (options.citus && binaries === undefined) {
    console.log("Skipped: install the extension citus for PostgreSQL 15, 16 or 17.");
    return;
  }
  progress(`seed ${seed}: starting ${options.citus ? "Citus" : "Postgres"}, Redis and ${replicas} replicas`);
  await using rig = await startRig({ replicas, ...(binaries !== undefined && { citus: { binaries } }) });
  const faults = await choose(options, rig);
  const { signal } = interruption;
  const round = await runRound(rig, { name: "r", seed, durationMs, faults, signal, onProgress: progress });
  signal.throwIfAborted();
  const report = reportOf(round, seed, durationMs);
  await writeFile(out, `${JSON.stringify(report, undefined, 2)}\n`);
  console.log(`\n${formatReport(report)}`);
  if (report.violations + report.timeouts === 0) return;
  process.exitCode = 1;
  await tell(round, seed);
  for (const { name, defects } of rig.replicas)
    for (const line of defects().slice(0, SHOWN_FAILURES)) console.error(`\n${name}: ${line}`);
}

/** Returns the chosen faults, without those that this machine cannot inject, and reports those. */
async function choose({ faults, citus }: ChaosOptions, rig: Rig): Promise<readonly Fault[]> {
  const known = citus ? FAULTS_ON_CITUS : FAULTS;
  const asked = known.filter(({ name }) => faults?.includes(name) ?? true);
  const possible: Fault[] = [];
  for (const fault of asked) {
    const reason = await fault.whyNot?.(rig);
    if (reason === undefined) possible.push(fault);
    else progress(`${fault.name} is skipped: ${reason}`);
  }
  return possible;
}

/** Prints failures and keeps them in `chaos-failures/`. */
async function tell({ evidence, judgement, recoveries, accidents }: Round, seed: number): Promise<void> {
  for (const accident of accidents) console.error(`\nACCIDENT: ${accident}`);
  for (const late of recoveries.filter(isLate)) console.error(`\nTOO LATE: ${describeRecovery(late)}`);
  await mkdir(FAILURES_DIR, { recursive: true });
  for (const [index, key] of judgement.timeouts.slice(0, SHOWN_FAILURES).entries()) {
    const operations = evidence.history.operations.filter((operation) => nameOf(operation) === key);
    const file = join(FAILURES_DIR, `seed-${seed}-undecided-${index + 1}.json`);
    await writeFile(file, JSON.stringify({ ...evidence.history, operations }));
    console.error(`\nNOT DECIDED: ${key}\n(${file})`);
  }
  for (const [index, violation] of judgement.violations.slice(0, SHOWN_FAILURES).entries()) {
    const text = describeFailure(violation, evidence.history, evidence.reads);
    const file = join(FAILURES_DIR, `seed-${seed}-${index + 1}.txt`);
    await writeFile(file, `${text}\n`);
    console.error(`\n${text}\n(${file})`);
  }
}
