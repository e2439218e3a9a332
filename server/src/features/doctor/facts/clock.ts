import { type ClockOffset, clockOffset } from "../../../core/domain/clock-offset.ts";
import type { Runner } from "../../../core/store/pool.ts";

const readClock = {
  name: "read_database_clock",
  text: "select date_part('epoch', clock_timestamp()) * 1000 as now_ms",
};

/** Compares this process' clock with the database's. */
export async function measureClockOffset(runner: Runner): Promise<ClockOffset> {
  const startedAtMs = Date.now();
  const [row] = await runner.run<{ now_ms: number }>(readClock, []);
  const endedAtMs = Date.now();
  if (row === undefined) throw new Error("read_database_clock returned no row");
  return clockOffset({ startedAtMs, endedAtMs, databaseMs: row.now_ms });
}
