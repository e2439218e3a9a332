import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type History, nameOf, type Operation } from "../../history/operation.ts";
import { describeViolation } from "../../history/timeline.ts";
import { countErrors } from "../errors.ts";
import { FAULTS } from "../faults/all.ts";
import type { Fault } from "../faults/fault.ts";
import { POSTGRES_CLOCK_FAULTS } from "../faults/postgres-clock.ts";
import { interruption, progress, runToEnd } from "../interruption.ts";
import { readOptions } from "../options.ts";
import { startRig } from "../rig.ts";
import { LATE_NAMESPACES, REFUSING, RETENTION_MS, RUNNING } from "./keys.ts";
import { RESTORES } from "./restore.ts";
import { type LateRound, runLateRound } from "./round.ts";

/** What came of the late repeats of a namespace's keys. */
interface LateRepeats {
  readonly keys: number;
  /** Claims of keys that were older than their retention and had been claimed before. */
  readonly repeats: number;
  /** The same by their answers. */
  readonly answers: Readonly<Record<string, number>>;
  /** Lives of keys beyond the first of each. */
  readonly secondLives: number;
}

function countLateRepeats({ operations }: History): Readonly<Record<string, LateRepeats>> {
  const byNamespace = Map.groupBy(operations, ({ namespace }) => namespace);
  return Object.fromEntries(
    [REFUSING, RUNNING].map((namespace) => [namespace, countIn(byNamespace.get(namespace) ?? [])]),
  );
}

function countIn(operations: readonly Operation[]): LateRepeats {
  const answers: Record<string, number> = {};
  let repeats = 0;
  let secondLives = 0;
  const keys = Map.groupBy(operations, nameOf);
  for (const own of keys.values()) {
    for (const repeat of lateRepeatsOf(own)) {
      repeats++;
      const { kind } = repeat.answer;
      answers[kind] = (answers[kind] ?? 0) + 1;
    }
    secondLives += Math.max(0, livesOf(own) - 1);
  }
  return { keys: keys.size, repeats, answers, secondLives };
}

/** Claims that were made when the key was older than its retention, but not the first claim of a key. */
function lateRepeatsOf(operations: readonly Operation[]): Operation[] {
  const claims = operations
    .filter(({ request }) => request.kind === "claim")
    .toSorted((a, b) => a.invokedAtMs - b.invokedAtMs);
  return claims.slice(1).filter(({ request, invokedAtMs }) => {
    const createdAtMs = request.kind === "claim" ? request.keyCreatedAtMs : undefined;
    return createdAtMs !== undefined && invokedAtMs >= createdAtMs + RETENTION_MS;
  });
}

/** A life begins with attempt 1; a claim that is repeated gets the same token. */
function livesOf(operations: readonly Operation[]): number {
  const tokens = operations.flatMap(({ answer }) =>
    answer.kind === "claimed" && answer.attempt === 1 ? [answer.token] : [],
  );
  return new Set(tokens).size;
}

/**
 * `npm run lab -- late [--minutes 15] [--seed 1] [--faults a,b] [--replicas 3] [--out FILE]`: callers that repeat keys
 * minutes after their end, in a namespace that refuses late keys and in one that runs them, while the database is
 * restored, and other faults happen. Exits 1 if a key had a second life where late keys are refused, or on another
 * violation.
 */
const FAILURES_DIR = "chaos-failures";
const SHOWN_FAILURES = 5;

/**
 * A replica of a version before may grant late keys, and the disk holds copies of the data. The clock of a database that is
 * restored is not set at the same time. The tenant that moves has no late keys.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "replica-old-version",
  "postgres-disk-full",
  ...POSTGRES_CLOCK_FAULTS.map(({ name }) => name),
  "tenant-move",
]);
const LATE_FAULTS: readonly Fault[] = [...FAULTS.filter(({ name }) => !LEFT_OUT.has(name)), ...RESTORES];

await runToEnd(async () => {
  const names = LATE_FAULTS.map(({ name }) => name);
  const { seed, durationMs, replicas, faults, out } = readOptions(process.argv.slice(2), {
    postgres: names,
    citus: names,
  });
  progress(`seed ${seed}: starting Postgres, Redis and ${replicas} replicas`);
  await using rig = await startRig({ replicas, namespaces: LATE_NAMESPACES, onOwnDisk: true });
  const round = await runLateRound(rig, {
    name: "l",
    seed,
    durationMs,
    faults: LATE_FAULTS.filter(({ name }) => faults?.includes(name) ?? true),
    signal: interruption.signal,
    onProgress: progress,
  });
  const report = reportOf(round, seed, durationMs);
  await writeFile(out, `${JSON.stringify(report, undefined, 2)}\n`);
  console.log(`\n${JSON.stringify(report, undefined, 2)}`);
  await showFailures(round, seed);
});

function reportOf(
  { history, injections, violations, timeouts, accidents }: LateRound,
  seed: number,
  ms: number,
) {
  const faults: Record<string, number> = {};
  for (const { fault } of injections) faults[fault] = (faults[fault] ?? 0) + 1;
  return {
    seed,
    minutes: ms / 60_000,
    operations: history.operations.length,
    late: countLateRepeats(history),
    restores: history.restores?.length ?? 0,
    faults,
    errors: countErrors(history.operations),
    timeouts: timeouts.length,
    violations: violations.length + accidents.length,
  };
}

async function showFailures({ violations, timeouts, accidents }: LateRound, seed: number): Promise<void> {
  if (violations.length + timeouts.length + accidents.length === 0) return;
  process.exitCode = 1;
  for (const accident of accidents) console.error(`\nACCIDENT: ${accident}`);
  for (const key of timeouts.slice(0, SHOWN_FAILURES)) console.error(`\nNOT DECIDED: ${key}`);
  await mkdir(FAILURES_DIR, { recursive: true });
  for (const [index, violation] of violations.slice(0, SHOWN_FAILURES).entries()) {
    const text = describeViolation(violation);
    await writeFile(join(FAILURES_DIR, `late-seed-${seed}-${index + 1}.txt`), `${text}\n`);
    console.error(`\n${text}`);
  }
}
