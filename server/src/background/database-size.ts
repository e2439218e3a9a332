import type { Runner } from "../database/pool.ts";
import type { BackgroundTask } from "../telemetry/background-metrics.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

/** Postgres asks for the size of each file. */
const INTERVAL_MS = 60_000;

const readSize = {
  name: "read_database_size",
  text: "select pg_database_size(current_database())::numeric as bytes",
};

/** Creates the task that reads the size of the database, to compare with the free space of its disk. */
export function createSizeReader(
  pool: Runner,
  metrics: Pick<Metrics, "databaseBytes">,
  onFailed: (task: BackgroundTask) => (error: unknown) => void,
): Repeating {
  return createRepeating({
    intervalMs: INTERVAL_MS,
    firstDelayMs: 0,
    async work() {
      const [row] = await pool.run<{ readonly bytes: number }>(readSize, []);
      if (row !== undefined) metrics.databaseBytes.set(row.bytes);
    },
    onFailed: onFailed("read_database_size"),
  });
}
