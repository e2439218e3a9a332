import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants, mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { waitUntil } from "./wait.ts";

/** A Redis of this process: empty at the start, and ended with the process. */
export interface EmbeddedRedis {
  /** The value of `REDIS_URL`. */
  readonly url: string;
  /** The server's program, such as `redis-server`. */
  readonly program: string;
  stop(): Promise<void>;
}

const PROGRAMS = ["valkey-server", "redis-server"];
const START_TIMEOUT_MS = 5000;
/** A cache: no file, no port, least recently used entries are evicted. */
const SETTINGS = {
  port: "0",
  save: "",
  appendonly: "no",
  maxmemory: "64mb",
  "maxmemory-policy": "allkeys-lru",
  unixsocketperm: "700",
};
/**
 * Runs the server until standard input ends: on `stop`, and also when this process is killed, which would
 * otherwise leave the server running.
 */
const WATCHED = '"$@" & read -r _; kill $!; wait; rm -rf "$0"';

/**
 * Starts the installed Redis or Valkey on a Unix socket that only this user can reach.
 *
 * @param path directories of programs, as in `PATH`.
 * @returns undefined if none is installed.
 * @throws Error if the installed program does not start.
 */
export async function startEmbeddedRedis(path: string): Promise<EmbeddedRedis | undefined> {
  const program = await findRedisProgram(path);
  if (program === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "onceward-redis-"));
  const socket = join(dir, "redis.sock");
  const settings = { ...SETTINGS, dir, unixsocket: socket };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  // A process group of its own, so that Ctrl-C in a terminal does not reach Redis: the service stops it after
  // its last call.
  const child = spawn("sh", ["-c", WATCHED, dir, program, ...args], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const stop = () => end(child);
  if (await waitUntil(() => child.exitCode !== null || answers(socket), START_TIMEOUT_MS)) {
    if (child.exitCode === null) return { url: `redis+unix://${socket}`, program, stop };
  }
  await stop();
  throw new Error(`${program} did not start`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, "exit");
  child.stdin?.end();
  await exited;
}

/**
 * Returns the path of the first server program in the directories of a `PATH`; undefined if there is none.
 */
export async function findRedisProgram(path: string): Promise<string | undefined> {
  for (const program of PROGRAMS) {
    for (const dir of path.split(delimiter)) {
      const file = join(dir, program);
      if (await isExecutable(file)) return file;
    }
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
    connection.once("error", () => resolve(false));
  });
}
