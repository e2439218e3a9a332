import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readUse } from "./cost.ts";
import type { BenchDatabase } from "./database.ts";
import { median } from "./statistics.ts";

const run = promisify(execFile);

const ROWS_PER_STATEMENT = 200;
/** Two statements at once. */
const CONNECTIONS = 2;

/** Inserts new keys in one statement from an array, as a batch of claims does. */
const SCRIPT = `
\\set batch random(1, 9000000000000000)
insert into operations (namespace, key, claim_id, fingerprint)
select 'limit', k.key, gen_random_uuid(), '\\x00'
  from unnest(array(select md5(:batch::text || '-' || i) from generate_series(1, ${ROWS_PER_STATEMENT}) i)) as k (key)
on conflict do nothing
returning claim_id;
`;

/** What Postgres does at most, without a service and without a client that computes. */
export interface Limit {
  readonly rowsPerSecond: number;
  /** Postgres' processor time of a row, in microseconds. */
  readonly postgresMicros: number;
}

/** Measures pgbench's inserts into the DIY table; returns undefined if pgbench isn't on the PATH. */
export async function measureLimit(
  database: BenchDatabase,
  durationS: number,
  signal: AbortSignal,
): Promise<Limit | undefined> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-pgbench-"));
  try {
    const script = join(dir, "claims.sql");
    await writeFile(script, SCRIPT);
    const load = ["--client", String(CONNECTIONS), "--time", String(durationS)];
    const args = ["--no-vacuum", "--protocol", "prepared", "--file", script, ...load, database.url];
    const before = await readUse(undefined, database);
    const { stdout } = await run("pgbench", args, { signal });
    const after = await readUse(undefined, database);
    const [, statements] = /^number of transactions actually processed: (\d+)/m.exec(stdout) ?? [];
    const [, perSecond] = /^tps = ([\d.]+)/m.exec(stdout) ?? [];
    if (perSecond === undefined || statements === undefined)
      throw new Error(`pgbench printed no transactions:\n${stdout}`);
    return {
      rowsPerSecond: Number(perSecond) * ROWS_PER_STATEMENT,
      postgresMicros:
        ((after.postgresS - before.postgresS) * 1e6) / (Number(statements) * ROWS_PER_STATEMENT),
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const COMMITS = 100;
/** Writes one record of some bytes to the log: https://www.postgresql.org/docs/18/functions-admin.html */
const COMMIT = "select pg_logical_emit_message(true, 'bench', 'commit')";

/**
 * Returns how long a lone commit takes, in milliseconds: a statement that logs a few bytes, less a statement that logs nothing.
 * Ratios to DIY depend on it, because batches save commits.
 */
export async function measureCommitMs(database: BenchDatabase): Promise<number> {
  const medianMs = async (statement: string) => {
    const durationsMs: number[] = [];
    for (let i = 0; i < COMMITS; i++) {
      const startedAtMs = performance.now();
      await database.query(statement);
      durationsMs.push(performance.now() - startedAtMs);
    }
    return median(durationsMs);
  };
  return (await medianMs(COMMIT)) - (await medianMs("select 1"));
}
