import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { findRedisProgram } from "../../../server/dev/embedded/redis.ts";

/** A run's own Redis, on a Unix socket, for faults. */
export interface ChaosRedis extends AsyncDisposable {
  readonly socket: string;
  /** Runs a command on the run's own connection. */
  command(name: string, ...args: (string | Buffer | number)[]): Promise<unknown>;
  signal(name: NodeJS.Signals): void;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again, empty, after `kill`. */
  restart(): Promise<void>;
}

/** Runs the server until standard input ends, which it also does when the run is killed. */
const WATCHED = '"$@" >/dev/null & echo $!; read -r _; kill -9 $! 2>/dev/null; wait';

/** Starts an empty Redis; undefined where none is installed: the service works without. */
export async function startChaosRedis(): Promise<ChaosRedis | undefined> {
  const program = await findRedisProgram(process.env.PATH ?? "");
  if (program === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "ow-chaos-redis-"));
  const socket = join(dir, "redis.sock");
  const args = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir];
  let running = await launch(program, args);
  const control = new Redis({ path: socket, lazyConnect: true, maxRetriesPerRequest: null });
  control.on("error", () => {});
  await control.ping();
  return {
    socket,
    command: (name, ...values) => control.callBuffer(name, ...values),
    signal: (name) => process.kill(running.pid, name),
    kill: () => running.end(),
    async restart() {
      running = await launch(program, args);
      await control.ping();
    },
    async [Symbol.asyncDispose]() {
      control.disconnect();
      await running.end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function launch(program: string, args: readonly string[]) {
  // Its own process group: a terminal's Ctrl-C must reach only the run.
  const child = spawn("sh", ["-c", WATCHED, "sh", program, ...args], {
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  const [line] = await once(child.stdout, "data");
  return {
    pid: Number.parseInt(String(line), 10),
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}
