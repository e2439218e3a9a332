import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, inject, onTestFinished } from "vitest";
import { freePort } from "../redis/redis.ts";

/** Runs tests that need a PgBouncer; skips them if none is installed, which the setup prints. */
export function describeWithPgBouncer(title: string, tests: () => void): void {
  describe.runIf(Boolean(inject("pgBouncerProgram")))(title, tests);
}

export interface PgBouncerSettings {
  readonly mode: "session" | "transaction";
  /** Whether start-up settings are dropped; otherwise PgBouncer refuses connections with them. */
  readonly ignoresSettings?: boolean;
  /** The role that it uses in Postgres; the URL's unless set. */
  readonly role?: string;
}

/** Runs the pooler until standard input ends, as it does when the tests are killed. */
const WATCHED = '"$@" & read -r _; kill -9 $! 2>/dev/null; wait';
const IGNORED =
  "extra_float_digits, options, statement_timeout, lock_timeout, idle_in_transaction_session_timeout";

/** Starts a PgBouncer before a database for one test, and returns the database's URL through it. */
export async function startPgBouncer(databaseUrl: string, settings: PgBouncerSettings): Promise<string> {
  const database = new URL(databaseUrl);
  const socketDir = database.searchParams.get("host") ?? "";
  const name = database.pathname.slice(1);
  const role = settings.role ?? database.username;
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), "ow-pgbouncer-"));
  await chmod(dir, 0o755);
  const config = join(dir, "pgbouncer.ini");
  await writeFile(
    config,
    `[databases]
${name} = host=${socketDir} port=${database.port} dbname=${name} user=${role}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${settings.mode}
${settings.ignoresSettings ? `ignore_startup_parameters = ${IGNORED}` : ""}
`,
  );
  // PgBouncer does not run as root, and only Postgres' user can reach its socket.
  const { uid, gid } = await stat(socketDir);
  const child = spawn("sh", ["-c", WATCHED, "sh", inject("pgBouncerProgram"), "--quiet", config], {
    stdio: ["pipe", "ignore", "inherit"],
    ...(process.getuid?.() === 0 && { uid, gid }),
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.stdin.end();
    await exited;
    await rm(dir, { recursive: true, force: true });
  });
  const url = `postgresql://${role}@127.0.0.1:${port}/${name}`;
  await expect.poll(() => answers(url), { timeout: 30_000 }).toBe(true);
  return url;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
