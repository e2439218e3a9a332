import { execFile } from "node:child_process";
import { realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../server/src/embedded/postgres.ts";
import { waitUntil } from "../../server/src/embedded/wait.ts";

const run = promisify(execFile);
const IN_STEP_TIMEOUT_MS = 30_000;
const NAME = "chaos_standby";

/**
 * Copies a running server's data, as a base backup does
 * (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP), starts a standby on it,
 * and has the primary acknowledge nothing from then on that the standby has not.
 */
export async function startStandby(
  primary: pg.Pool,
  dataDir: string,
  copyDir: string,
  { url }: EmbeddedPostgres,
  settings: Readonly<Record<string, string>>,
): Promise<EmbeddedPostgres> {
  const client = await primary.connect();
  try {
    await client.query("select pg_backup_start('chaos', true)");
    const from = await realpath(dataDir);
    // Files may vanish while they are copied; what that loses, the log brings back.
    await run("cp", ["-a", from, copyDir]).catch(() => {});
    const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
    await rm(join(copyDir, "postmaster.pid"), { force: true });
    await rm(join(copyDir, "postgresql.auto.conf"), { force: true });
    await writeFile(join(copyDir, "backup_label"), rows[0]?.labelfile ?? "");
    await writeFile(join(copyDir, "standby.signal"), "");
    // Made by us, but read by whom the server runs as.
    await run("chown", ["-R", `--reference=${join(copyDir, "PG_VERSION")}`, copyDir]);
  } finally {
    client.release();
  }
  const { username, searchParams } = new URL(url("postgres"));
  const conninfo = `host=${searchParams.get("host")} user=${username} application_name=${NAME}`;
  const standby = await startEmbeddedPostgres({
    dataDir: copyDir,
    settings: { ...settings, primary_conninfo: conninfo },
  });
  await primary.query(`alter system set synchronous_standby_names = '${NAME}'`);
  await primary.query("select pg_reload_conf()");
  const isInStep = async () => {
    const { rows } = await primary.query("select 1 from pg_stat_replication where sync_state = 'sync'");
    return rows.length > 0;
  };
  if (!(await waitUntil(isInStep, IN_STEP_TIMEOUT_MS))) throw new Error("the standby did not catch up");
  return standby;
}
