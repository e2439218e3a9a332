import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

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

/**
 * Returns the rows a second that pgbench inserts into the DIY table; undefined if pgbench isn't on the PATH.
 */
export async function measureLimit(
  databaseUrl: string,
  durationS: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-pgbench-"));
  try {
    const script = join(dir, "claims.sql");
    await writeFile(script, SCRIPT);
    const load = ["--client", String(CONNECTIONS), "--time", String(durationS)];
    const args = ["--no-vacuum", "--protocol", "prepared", "--file", script, ...load, databaseUrl];
    const { stdout } = await run("pgbench", args, { signal });
    const [, perSecond] = /^tps = ([\d.]+)/m.exec(stdout) ?? [];
    if (perSecond === undefined) throw new Error(`pgbench printed no tps:\n${stdout}`);
    return Number(perSecond) * ROWS_PER_STATEMENT;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
