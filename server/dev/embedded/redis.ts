import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants, mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { waitUntil } from "./wait.ts";

/** A Redis of this process's own: empty at the start, gone at the end. */
export interface EmbeddedRedis {
  /** For `REDIS_URL`. */
  readonly url: string;
  /** The server's program, such as `redis-server`. */
  readonly program: string;
  stop(): Promise<void>;
}

const PROGRAMS = ["valkey-server", "redis-server"];
const START_TIMEOUT_MS = 5000;
/** It keeps copies only: no file, no port, and the least used go first. */
const SETTINGS = {
  port: "0",
  save: "",
  appendonly: "no",
  maxmemory: "64mb",
  "maxmemory-policy": "allkeys-lru",
  unixsocketperm: "700",
};
/**
 * Runs the server until standard input ends: it does when `stop` says so, and also when this process is killed, which
 * would otherwise leave the server behind.
 */
const WATCHED = '"$@" & read -r _; kill $!; wait; rm -rf "$0"';

/**
 * Starts the Redis or Valkey that is installed, on a Unix socket that only this user can reach.
 *
 * @param path where to look for programs, as in `PATH`.
 * @returns undefined if none is installed: Onceward runs without.
 * @throws if one is, and doesn't start.
 */
export async function startEmbeddedRedis(path: string): Promise<EmbeddedRedis | undefined> {
  const program = await findRedisProgram(path);
  if (program === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "onceward-redis-"));
  const socket = join(dir, "redis.sock");
  const settings = { ...SETTINGS, dir, unixsocket: socket };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  // A process group of its own: a terminal's Ctrl-C is for the service, which stops Redis after its last call.
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

/** The first server program in the directories of a `PATH`, as a file; undefined if there is none. */
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
