import { fileURLToPath } from "node:url";
import { checkHistory, type Violation } from "../../history/check.ts";
import { readJournals } from "../../history/journal.ts";
import { type History, nameOf, nowMs } from "../../history/operation.ts";
import { checkErrors } from "../errors.ts";
import type { Fault } from "../faults/fault.ts";
import { clockMovesOf, type Injection, injectFaults, untilMs } from "../injector.ts";
import { startFleet } from "../load/fleet.ts";
import { createProvider } from "../load/provider.ts";
import { TENANTS } from "../load/spaces.ts";
import type { Rig } from "../rig.ts";
import type { RoundOptions } from "../round.ts";
import { planFaults } from "../schedule.ts";
import { LATE_NAMESPACES } from "./keys.ts";
import { RESTORES } from "./restore.ts";

/** A load of late keys under faults, and its judgement. */
export interface LateRound {
  readonly history: History;
  readonly injections: readonly Injection[];
  readonly violations: readonly Violation[];
  readonly timeouts: readonly string[];
  /** Faults that failed, and processes that ended unexpectedly. */
  readonly accidents: readonly string[];
}

const PROGRAM = fileURLToPath(new URL("client.ts", import.meta.url));
const CLIENTS = 3;
const WORKERS = 2;
const [TENANT] = TENANTS;
/** Of as many faults as there are others, so many are restores of each kind: those lose records. */
const OF_EACH_RESTORE = 3;
/** Of the planned faults only one in so many: most of the time has to be left for repeats. */
const SPARSE = 6;

/** Runs the load on a rig with LATE_NAMESPACES. */
export async function runLateRound(rig: Rig, options: RoundOptions): Promise<LateRound> {
  const { name, seed, durationMs, faults, signal, onProgress } = options;
  const ports = rig.replicas.map((replica) => ({ name: replica.name, grpcPort: replica.inbound.port }));
  await using fleet = await startFleet({
    program: PROGRAM,
    size: CLIENTS,
    dir: rig.dir,
    provider: createProvider(),
    planFor: (number, journalPath) => ({
      client: `client-${number}`,
      seed: seed * CLIENTS + number,
      journalPath,
      replicas: ports,
      apiKeys: { [TENANT]: rig.apiKeys[TENANT] ?? "" },
      adminKey: undefined,
      originMs: nowMs(),
      round: name,
      workers: WORKERS,
      watchIntervalMs: 0,
    }),
  });
  const schedule = planFaults(seed, durationMs, namesOf(faults)).filter((_, index) => index % SPARSE === 0);
  const turns = faults.map(takingTurns);
  const scene = { rig, clients: fleet.clients, signal };
  const beganMs = nowMs();
  const isOver = () => nowMs() > beganMs + durationMs;
  const { injections, failures } = await injectFaults(schedule, turns, scene, onProgress, isOver);
  await untilMs(beganMs + durationMs, signal);
  const { journalPaths } = await fleet.stop();
  signal.throwIfAborted();
  const history: History = {
    operations: readJournals(journalPaths),
    policies: LATE_NAMESPACES.map((policy) => ({ ...policy, tenant: TENANT })),
    clockMoves: clockMovesOf(injections),
    restores: injections.flatMap(({ restore }) => restore ?? []),
  };
  onProgress(`judging ${history.operations.length} operations`);
  const { violations, timeouts } = checkHistory(history);
  return {
    history,
    injections,
    violations: [...violations, ...checkErrors(history)],
    timeouts: timeouts.map(nameOf),
    accidents: [...failures, ...rig.accidents],
  };
}

/** A restore stops the replicas, too, so faults of both wait for each other. */
function takingTurns(fault: Fault): Fault {
  return fault.target === "replica" ? { ...fault, target: "postgres" } : fault;
}

function namesOf(faults: readonly Fault[]): string[] {
  const names = faults.map(({ name }) => name);
  const isRestore = (name: string) => RESTORES.some((restore) => restore.name === name);
  return names.flatMap((name) => (isRestore(name) ? Array<string>(OF_EACH_RESTORE).fill(name) : [name]));
}
