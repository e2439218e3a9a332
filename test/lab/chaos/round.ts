import { join } from "node:path";
import { readJournals } from "../history/journal.ts";
import { nameOf, nowMs, type Operation, type RecordName } from "../history/operation.ts";
import { effectsOf, type FaultEffect } from "./fault-effects.ts";
import type { Fault } from "./faults/fault.ts";
import { probe, readAll } from "./final.ts";
import { watchIdleTime } from "./idle-time.ts";
import { clockMovesOf, type Injection, injectFaults, tenantMovesOf, untilMs } from "./injector.ts";
import { type Evidence, type Judgement, judge } from "./judge.ts";
import { startFleet } from "./load/fleet.ts";
import { createProvider } from "./load/provider.ts";
import { initialPolicies } from "./load/spaces.ts";
import { LATEST_MS, type Recovery, recoveriesOf } from "./recovery.ts";
import type { Rig } from "./rig.ts";
import { planFaults } from "./schedule.ts";

/** A load under faults, from its first call to its judgement. */
export interface Round {
  readonly evidence: Evidence;
  readonly judgement: Judgement;
  readonly injections: readonly Injection[];
  readonly loadEndedAtMs: number;
  /** When clients were served again after faults. */
  readonly recoveries: readonly Recovery[];
  /** What clients noticed of faults while they lasted. */
  readonly effects: readonly FaultEffect[];
  /** Faults that failed, and processes that ended unexpectedly. */
  readonly accidents: readonly string[];
}

export interface RoundOptions {
  /** Part of its keys; unique on a rig. */
  readonly name: string;
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly Fault[];
  readonly signal: AbortSignal;
  readonly onProgress: (what: string) => void;
}

const CLIENTS = 3;
const WORKERS = 5;
const WATCH_INTERVAL_MS = 200;
/** On Citus only some of the checks ask for a key of the node that was down. */
const WATCH_INTERVAL_ON_CITUS_MS = 100;
/** Longer than any lease of the load plus the margin of `checkLiveness`. */
const SETTLE_MS = 4500;

const MARGIN_MS = 500;

/** Runs a load under faults and judges it. */
export async function runRound(rig: Rig, options: RoundOptions): Promise<Round> {
  const { name, seed, durationMs, faults, signal, onProgress } = options;
  const provider = createProvider();
  const originMs = nowMs();
  const ports = rig.replicas.map((replica) => ({ name: replica.name, grpcPort: replica.inbound.port }));
  await using fleet = await startFleet({
    size: CLIENTS,
    dir: rig.dir,
    provider,
    planFor: (number, journalPath) => ({
      client: `client-${number}`,
      seed: seed * CLIENTS + number,
      journalPath,
      replicas: ports,
      apiKeys: rig.apiKeys,
      adminKey: number === 1 ? rig.adminKey : undefined,
      originMs,
      round: name,
      workers: WORKERS,
      watchIntervalMs: rig.citus === undefined ? WATCH_INTERVAL_MS : WATCH_INTERVAL_ON_CITUS_MS,
    }),
  });
  const schedule = planFaults(
    seed,
    durationMs,
    faults.map((fault) => fault.name),
  );
  const scene = { rig, clients: fleet.clients, signal };
  const idleWatch = watchIdleTime();
  const beganMs = nowMs();
  const isOver = () => nowMs() > beganMs + durationMs;
  const { injections, failures } = await injectFaults(schedule, faults, scene, onProgress, isOver);
  // Long enough to watch the recovery from the last fault.
  await untilMs(Math.max(beganMs + durationMs, nowMs() + LATEST_MS + MARGIN_MS), signal);
  const loadEndedAtMs = nowMs();
  const idleTime = idleWatch.stop();
  const { journalPaths, retentionChanges, looks } = await fleet.stop();
  signal.throwIfAborted();
  const healedAtMs = nowMs();
  await untilMs(healedAtMs + SETTLE_MS, signal);
  onProgress("claiming and reading every key once more");
  const probePath = join(rig.dir, `probe-${name}.jsonl`);
  await probe(rig, namesOf(readJournals(journalPaths)), probePath);
  const ownPaths = injections.flatMap(({ journalPath }) => journalPath ?? []);
  const operations = readJournals([...journalPaths, ...ownPaths, probePath]);
  const reads = await readAll(rig, namesOf(operations), signal);
  onProgress(`judging ${operations.length} operations`);
  const history = {
    operations,
    policies: initialPolicies(),
    retentionChanges,
    clockMoves: clockMovesOf(injections),
    tenantMoves: tenantMovesOf(injections),
  };
  const evidence = { history, reads, effects: provider, healedAtMs };
  return {
    evidence,
    judgement: judge(evidence),
    injections,
    effects: effectsOf(looks, injections),
    recoveries: recoveriesOf(looks, injections, loadEndedAtMs, idleTime),
    loadEndedAtMs,
    accidents: [...failures, ...rig.accidents],
  };
}

function namesOf(operations: readonly Operation[]): RecordName[] {
  const names = new Map(operations.map((operation) => [nameOf(operation), operation]));
  return [...names.values()].map(({ tenant, namespace, key }) => ({ tenant, namespace, key }));
}
