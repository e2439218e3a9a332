import type { Runner } from "../../database/pool.ts";
import { BEFORE_ALL_REPLICAS, findReplicas } from "../../database/replicas.ts";
import { type ClockOffset, clockOffset, isSkewed } from "../../domain/clock-offset.ts";
import type { LiveReplica } from "../../domain/replica.ts";
import type { Check, Observation } from "../findings.ts";

const readClock = {
  name: "read_database_clock",
  text: "select extract(epoch from clock_timestamp()) * 1000 as now_ms",
};

/** Compares this process' clock with the database's. */
export async function measureClockOffset(runner: Runner): Promise<ClockOffset> {
  const startedAtMs = Date.now();
  const [row] = await runner.run<{ now_ms: number }>(readClock, []);
  const endedAtMs = Date.now();
  if (row === undefined) throw new Error("read_database_clock returned no row");
  return clockOffset({ startedAtMs, endedAtMs, databaseMs: row.now_ms });
}

/** More replicas than any installation has. */
const MAX_REPLICAS = 1000;

/** Compares this process' clock with the database's, and reads what the replicas found about theirs. */
export const clocksCheck: Check = {
  name: "clocks",
  async examine({ runner }) {
    const found = [
      ...judgeClock(await measureClockOffset(runner)),
      ...(await findReplicas(runner, BEFORE_ALL_REPLICAS, MAX_REPLICAS)).flatMap(judgeReplica),
    ];
    // From the database's clock, if that is wrong, every right clock differs.
    const moved = found.filter(({ id }) => id === "database_clock_moved");
    return moved.length > 0 ? moved : found;
  },
};

/** Returns whether this process' clock differs too much from the database's. */
function judgeClock(offset: ClockOffset): readonly Observation[] {
  if (!isSkewed(offset)) return [];
  const seconds = (Math.abs(offset.aheadMs) / 1000).toFixed(1);
  const direction = offset.aheadMs > 0 ? "ahead of" : "behind";
  return [
    { id: "clock_skewed", summary: `This machine's clock is ${seconds} s ${direction} the database's.` },
  ];
}

function judgeReplica({ id, degraded }: LiveReplica): readonly Observation[] {
  const skewed: Observation = {
    id: "clock_skewed",
    summary: `The clock of replica ${id} differs from the database's by more than 2 s.`,
  };
  const moved: Observation = {
    id: "database_clock_moved",
    summary: `Replica ${id} saw the database's clock move by more than 1 s, or does not agree with another replica.`,
  };
  return [skewed, moved].filter((observation) => degraded.includes(observation.id));
}
