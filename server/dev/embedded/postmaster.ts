import { spawn } from "node:child_process";
import { open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SERVER_ENVIRONMENT } from "./cluster.ts";
import { countAttached } from "./orphans.ts";
import {
  isAlive,
  isPostmaster,
  type PidFile,
  type Postmaster,
  readPidFile,
  signalProcess,
} from "./pid-file.ts";
import type { ServerUser } from "./server-user.ts";
import { removeSocketDir } from "./socket.ts";
import { waitUntil } from "./wait.ts";

// Long enough to replay the log after a crash during a benchmark.
const READY_TIMEOUT_MS = 60_000;
// A fast shutdown writes a checkpoint first.
const STOP_TIMEOUT_MS = 60_000;
const ABORT_TIMEOUT_MS = 5_000;
// The children of a killed postmaster notice it shortly after; until then they may still write.
const ORPHANS_TIMEOUT_MS = 10_000;
const LOG_TAIL_BYTES = 4_096;
const LOG_LIMIT_BYTES = 16 * 1024 * 1024;

/** Options for starting a server; `logFile` receives its output. */
type LaunchPlan = {
  readonly binDir: string;
  readonly dataDir: string;
  readonly socketDir: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly user: ServerUser | undefined;
};

/**
 * Returns the server that runs on this data once it is ready, or undefined. Removes files of a killed server
 * that PostgreSQL does not remove itself.
 *
 * @throws Error if a server neither becomes ready nor ends.
 */
export async function findPostmaster(dataDir: string): Promise<Postmaster | undefined> {
  const left = await readPidFile(dataDir);
  if (left === undefined) return undefined;
  let current: PidFile | undefined = left;
  const settled = await waitUntil(async () => {
    current = await readPidFile(dataDir);
    return current === undefined || current.status === "ready" || !isPostmaster(current.pid);
  }, READY_TIMEOUT_MS);
  if (!settled) throw new Error(`PostgreSQL (process ${left.pid}) on ${dataDir} stays ${left.status}`);
  if (current !== undefined && isPostmaster(current.pid)) return current;
  await clearLeftovers(dataDir, left);
  return undefined;
}

/**
 * Starts a server and waits until it accepts connections. The server has its own process group, so that
 * Ctrl-C in a terminal does not reach it.
 *
 * @throws Error with the end of its log.
 */
export async function launch(plan: LaunchPlan): Promise<Postmaster> {
  await using log = await openLog(plan.logFile);
  const logStart = (await log.stat()).size;
  const child = spawn(join(plan.binDir, "postgres"), serverArguments(plan), {
    cwd: "/",
    detached: true,
    env: SERVER_ENVIRONMENT,
    stdio: ["ignore", log.fd, log.fd],
    ...plan.user,
  });
  child.unref();
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
  });
  child.once("exit", (code, signalName) => {
    failure = `it ended with ${signalName ?? `exit code ${code}`}`;
  });
  // A stale file may contain this very process number, because numbers are reused; the socket directory is
  // new every time.
  const isReady = (file?: PidFile) => file?.socketDir === plan.socketDir && file.status === "ready";
  let current: PidFile | undefined;
  await waitUntil(async () => {
    current = await readPidFile(plan.dataDir);
    return failure !== undefined || isReady(current);
  }, READY_TIMEOUT_MS);
  if (failure === undefined && current !== undefined && isReady(current)) return current;
  child.kill("SIGQUIT");
  const reason = failure ?? `it was not ready after ${READY_TIMEOUT_MS / 1000} s`;
  throw new Error(`PostgreSQL did not start: ${reason}\n${await tail(plan.logFile, logStart)}`);
}

/**
 * Stops a server (fast shutdown): ends sessions, writes everything, and waits for the end of the process.
 *
 * @throws Error if the server had to be aborted, or could not be.
 */
export async function shutDown({ pid }: Pick<Postmaster, "pid">): Promise<void> {
  const gone = () => !isPostmaster(pid);
  if (gone()) return;
  signalProcess(pid, "SIGINT");
  if (await waitUntil(gone, STOP_TIMEOUT_MS)) return;
  signalProcess(pid, "SIGQUIT");
  const aborted = await waitUntil(gone, ABORT_TIMEOUT_MS);
  const outcome = aborted ? "was aborted" : "is still running";
  throw new Error(`PostgreSQL (process ${pid}) did not stop in ${STOP_TIMEOUT_MS / 1000} s and ${outcome}`);
}

function serverArguments({ dataDir, socketDir, settings }: LaunchPlan): string[] {
  const all = {
    ...settings,
    listen_addresses: "",
    port: "5432",
    unix_socket_directories: socketDir,
    unix_socket_permissions: "0700",
  };
  return ["-D", dataDir, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}

// PostgreSQL replaces a dead server's postmaster.pid itself, unless any process of its user has the number,
// even a zombie. We know that this process is not a postmaster.
async function clearLeftovers(dataDir: string, left: PidFile): Promise<void> {
  const orphansGone = async () => (await countAttached(left.sharedMemoryId)) === 0;
  if (!(await waitUntil(orphansGone, ORPHANS_TIMEOUT_MS))) {
    throw new Error(`PostgreSQL (process ${left.pid}) on ${dataDir} is dead, but its children still run`);
  }
  if (isAlive(left.pid)) await rm(join(dataDir, "postmaster.pid"), { force: true });
  await removeSocketDir(left.socketDir);
}

async function openLog(logFile: string) {
  const { size } = await stat(logFile).catch(() => ({ size: 0 }));
  return await open(logFile, size < LOG_LIMIT_BYTES ? "a" : "w");
}

async function tail(logFile: string, from: number): Promise<string> {
  const log = await readFile(logFile);
  return `${log.subarray(Math.max(from, log.length - LOG_TAIL_BYTES)).toString()}(from ${logFile})`;
}
