import { askWorkers, type CitusState, readCitusState, type WorkerAnswer } from "../../citus/citus-state.ts";
import { canHoldShards } from "../../citus/shard-guard.ts";
import { hasCitus } from "../../database/engine.ts";
import { type Runner, WORKER_SETTINGS } from "../../database/pool.ts";
import { clockOffset, isSkewed } from "../../domain/clock-offset.ts";
import type { Check, Observation } from "../findings.ts";
import { judgeStandbys, STANDBY_STATES } from "./standbys.ts";

/** Looks at the nodes of a Citus, if the database has the extension. */
export const citusCheck: Check = {
  name: "citus",
  async examine({ runner }) {
    if (!(await hasCitus(runner))) return [];
    const state = await readCitusState(runner);
    const nodes = judgeNodes(state);
    if (nodes.length > 0 || state.distributedBy === null) return nodes;
    const workers = await askWorkers(runner, READ_WORKER);
    return [
      ...judgeWorkers(workers),
      ...judgeFunctions(await canHoldShards(runner)),
      ...judgeNodeClocks(await readNodeClocks(runner)),
      ...judgeWorkerStandbys(workers),
    ];
  },
};

/** What the guarantees rest on, as on the coordinator: off is wrong. */
const DURABILITY = ["fsync", "full_page_writes", "synchronous_commit", "autovacuum"] as const;

const READ_NAMES = [...Object.keys(WORKER_SETTINGS), ...DURABILITY, "synchronous_standby_names"];
const READ_WORKER = `
select json_build_object(
         'settings', (select json_object_agg(name, setting) from pg_settings
                       where name in (${READ_NAMES.map((name) => `'${name}'`).join(", ")})),
         'standbys', array(${STANDBY_STATES}))`;

/** What READ_WORKER reads. */
interface WorkerFacts {
  readonly settings: Readonly<Record<string, string>>;
  /** As `readStandbys`. */
  readonly standbys: readonly (string | null)[];
}

const readFacts = ({ result }: WorkerAnswer): WorkerFacts => JSON.parse(result) as WorkerFacts;

/** Returns what is wrong with the nodes and with the distribution of the records. */
export function judgeNodes(state: CitusState): readonly Observation[] {
  if (state.unreachable.length > 0) {
    const summary = `Not all nodes of Citus reach each other. Not reached: ${state.unreachable.join(", ")}.`;
    return [{ id: "citus_node_unreachable", summary }];
  }
  if (state.distributedBy !== "key" && state.workers.length > 0) {
    const how =
      state.distributedBy === null
        ? "are all on the coordinator"
        : `are distributed by ${state.distributedBy}`;
    return [{ id: "citus_records_not_distributed", summary: `Citus has workers, and the records ${how}.` }];
  }
  return [];
}

/** Returns which workers lack settings of the service's sessions, or have those off that the guarantees rest on. */
export function judgeWorkers(answers: readonly WorkerAnswer[]): readonly Observation[] {
  return answers.flatMap((answer): Observation[] => {
    const { node, success, result } = answer;
    if (!success) {
      return [{ id: "citus_node_unreachable", summary: `Worker ${node} does not answer: ${result}.` }];
    }
    const { settings } = readFacts(answer);
    const lacking = Object.entries(WORKER_SETTINGS).filter(
      ([name, value]) => settings[name] !== String(value),
    );
    const off = DURABILITY.filter((name) => settings[name] === "off").map((name): Observation => {
      return { id: `${name}_off`, summary: `Worker ${node}: ${name} is off.` };
    });
    if (lacking.length === 0) return off;
    const names = lacking.map(([name]) => name).join(", ");
    const summary = `The database of worker ${node} lacks the settings ${names}.`;
    return [...off, { id: "citus_worker_settings_missing", summary }];
  });
}

/** Returns what is wrong with the standbys of workers that answer: Citus keeps one copy of each shard. */
export function judgeWorkerStandbys(answers: readonly WorkerAnswer[]): readonly Observation[] {
  return answers.flatMap((answer) => {
    if (!answer.success) return [];
    const { settings, standbys } = readFacts(answer);
    const { synchronous_standby_names = "", synchronous_commit = "" } = settings;
    return judgeStandbys({ synchronous_standby_names, synchronous_commit }, standbys).map((found) => ({
      ...found,
      summary: `Worker ${answer.node}: ${found.summary}`,
    }));
  });
}

function judgeFunctions(areUsable: boolean): readonly Observation[] {
  if (areUsable) return [];
  const summary =
    "Statements cannot use single shards: the function onceward_hold_shard is missing, or a migrate --undistribute was cut off.";
  return [{ id: "citus_functions_missing", summary }];
}

/** Returns the workers whose clocks differ too much from the coordinator's. */
export function judgeNodeClocks(clocks: Awaited<ReturnType<typeof readNodeClocks>>): readonly Observation[] {
  return clocks.flatMap(({ node, reading }): Observation[] => {
    const offset = clockOffset(reading);
    if (!isSkewed(offset)) return [];
    const seconds = (Math.abs(offset.aheadMs) / 1000).toFixed(1);
    const direction = offset.aheadMs > 0 ? "behind" : "ahead of";
    const summary = `The clock of worker ${node} is ${seconds} s ${direction} the coordinator's.`;
    return [{ id: "citus_clock_skewed", summary }];
  });
}

const READ_CLOCK = "select extract(epoch from clock_timestamp()) * 1000";

/** Reads the clock of each worker that answers, between two readings of the coordinator's. */
async function readNodeClocks(runner: Runner) {
  const startedAtMs = await readOwnClock(runner);
  const answers = await askWorkers(runner, READ_CLOCK);
  const endedAtMs = await readOwnClock(runner);
  return answers
    .filter(({ success }) => success)
    .map(({ node, result }) => ({
      node,
      reading: { startedAtMs, endedAtMs, databaseMs: Number(result) },
    }));
}

const readCoordinatorClock = {
  name: "read_coordinator_clock",
  text: `select (${READ_CLOCK}) as "nowMs"`,
};

async function readOwnClock(runner: Runner): Promise<number> {
  const [row] = await runner.run<{ nowMs: number }>(readCoordinatorClock, []);
  if (row === undefined) throw new Error("read_coordinator_clock returned no row");
  return row.nowMs;
}
