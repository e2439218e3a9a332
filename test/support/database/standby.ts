import { execFile } from "node:child_process";
import { mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";

const run = promisify(execFile);
const IN_STEP_TIMEOUT_MS = 30_000;
const NAME = "chaos_standby";

/** Whether a primary waits for its standby before it acknowledges. */
type Standing = "synchronous" | "asynchronous";

interface StandbyOptions {
  /** Connected to the primary. */
  readonly control: pg.Pool;
  readonly primary: EmbeddedPostgres;
  readonly dataDir: string;
  /** The directory for the standby's data. */
  readonly copyDir: string;
  readonly settings: Readonly<Record<string, string>>;
  /** The `bin` directory of another Postgres; unset: the packaged one. */
  readonly binaries?: string;
  readonly standing: Standing;
}

/**
 * Copies a running server's data, as a base backup does
 * (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP), and starts
 * a standby on it. Resolves once the standby streams from the primary; from then on a synchronous one has
 * everything that is acknowledged.
 */
export async function startStandby(options: StandbyOptions): Promise<EmbeddedPostgres> {
  const { control, primary, dataDir, copyDir, settings, binaries, standing } = options;
  const client = await control.connect();
  try {
    await client.query("select pg_backup_start('chaos', true)");
    const from = await realpath(dataDir);
    // Files may vanish while they are copied; the log restores their contents.
    await run("cp", ["-a", from, copyDir]).catch(() => {});
    const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
    await rm(join(copyDir, "postmaster.pid"), { force: true });
    await rm(join(copyDir, "postgresql.auto.conf"), { force: true });
    // The standby streams the log from the primary; a copy would contain the logs of all earlier primaries.
    await rm(join(copyDir, "pg_wal"), { recursive: true, force: true });
    await mkdir(join(copyDir, "pg_wal"), { mode: 0o700 });
    await writeFile(join(copyDir, "backup_label"), rows[0]?.labelfile ?? "");
    await writeFile(join(copyDir, "standby.signal"), "");
    // Written by this user, read by the user that the server runs as.
    await run("chown", ["-R", `--reference=${join(copyDir, "PG_VERSION")}`, copyDir]);
  } finally {
    client.release();
  }
  const { username, searchParams } = new URL(primary.url("postgres"));
  const conninfo = `host=${searchParams.get("host")} user=${username} application_name=${NAME}`;
  const standby = await startEmbeddedPostgres({
    dataDir: copyDir,
    settings: { ...settings, primary_conninfo: conninfo },
    ...(binaries !== undefined && { binaries }),
  });
  try {
    await untilInStep(control, standing);
    if (standing === "synchronous") await untilCommitsWait(control, standby);
  } catch (error) {
    await standby.stop();
    throw error;
  }
  return standby;
}

/** Makes the primary wait for a synchronous standby; resolves once the standby streams. */
async function untilInStep(control: pg.Pool, standing: Standing): Promise<void> {
  if (standing === "synchronous") {
    await control.query(`alter system set synchronous_standby_names = '${NAME}'`);
    await control.query("select pg_reload_conf()");
  }
  const expected = standing === "synchronous" ? "sync" : "async";
  const isInStep = async () => {
    const { rows } = await control.query(
      "select 1 from pg_stat_replication where state = 'streaming' and sync_state = $1",
      [expected],
    );
    return rows.length > 0;
  };
  if (!(await waitUntil(isInStep, IN_STEP_TIMEOUT_MS))) throw new Error("the standby did not catch up");
}

const COMMIT_APPLIED = `
begin;
set local synchronous_commit = remote_apply;
select pg_logical_emit_message(true, 'chaos', '');
commit`;

/**
 * Resolves once commits wait for a synchronous standby. On a busy machine that may be seconds after the primary reports the standby
 * as synchronous: its checkpointer is the process that tells the others.
 */
async function untilCommitsWait(control: pg.Pool, standby: EmbeddedPostgres): Promise<void> {
  const replay = new pg.Client({ connectionString: standby.url("postgres") });
  const client = await control.connect();
  try {
    await replay.connect();
    await replay.query("select pg_wal_replay_pause()");
    const { rows } = await client.query("select pg_backend_pid() as pid");
    let commit: Promise<unknown> | undefined;
    const isWaiting = async () => {
      commit ??= client.query(COMMIT_APPLIED).finally(() => {
        commit = undefined;
      });
      const waiting = await control.query(
        "select from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'",
        [rows[0].pid],
      );
      return waiting.rowCount === 1;
    };
    const hasWaited = await waitUntil(isWaiting, IN_STEP_TIMEOUT_MS);
    await replay.query("select pg_wal_replay_resume()");
    await commit;
    if (!hasWaited) throw new Error("commits do not wait for the standby");
  } finally {
    client.release();
    await replay.end();
  }
}
