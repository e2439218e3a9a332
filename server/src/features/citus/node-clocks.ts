import type { ClockReading } from "../../core/domain/clock-offset.ts";
import type { Runner } from "../../core/store/pool.ts";
import { askWorkers } from "./citus-state.ts";

/** A reading of a worker's clock between two readings of the coordinator's. */
export interface NodeClock {
  /** `host:port`. */
  readonly node: string;
  readonly reading: ClockReading;
}

const READ_CLOCK = "select date_part('epoch', clock_timestamp()) * 1000";

/** Reads the clock of each worker that answers. */
export async function readNodeClocks(runner: Runner): Promise<readonly NodeClock[]> {
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
