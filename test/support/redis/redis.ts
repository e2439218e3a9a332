import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { Redis } from "ioredis";
import { describe, inject } from "vitest";
import { useStarted } from "../use-started.ts";

/** A Redis for one test, on a loopback port; the test may kill or freeze it. */
export interface TestRedis {
  readonly port: number;
  /** `redis://…` without credentials. */
  readonly url: string;
  /** Runs a command on the test's own connection. */
  command(name: string, ...args: (string | Buffer | number)[]): Promise<unknown>;
  signal(name: NodeJS.Signals): void;
  /** Kills the server without a shutdown. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty, after `kill`. */
  restart(): Promise<void>;
  /** Ends the server and the test's connection. */
  stop(): Promise<void>;
}

export interface RedisSettings {
  /** The port; undefined for a free one. */
  readonly port?: number;
  /** Further arguments of the program, such as `["--cluster-enabled", "yes"]`. */
  readonly args?: readonly string[];
  /** Starts a sentinel with these lines in its configuration; undefined starts a server of data. */
  readonly sentinel?: readonly string[];
  /** Credentials and TLS of the test's own connection. */
  readonly connect?: {
    readonly username?: string;
    readonly password?: string;
    readonly tls?: ConnectionOptions;
  };
}

/** Whether there is a Redis to start: never in runs with another Postgres, where it makes no difference. */
export function hasRedis(): boolean {
  return Boolean(inject("redisProgram"));
}

/** Runs tests that need a Redis; skips them if none is installed, which the setup prints. */
export function describeWithRedis(title: string, tests: () => void): void {
  describe.runIf(hasRedis())(title, tests);
}

/** Starts an empty Redis for the tests of the file, or of the `describe` that calls this. */
export function useRedis(): TestRedis {
  return useStarted(
    () => startRedis(),
    (redis) => redis.stop(),
  );
}

/** Runs the server until standard input ends, as it does when the tests are killed. */
const WATCHED = '"$@" & echo $!; read -r _; kill -9 $! 2>/dev/null; wait';

/** Nothing is kept on disk; a master does not wait 5 s for more replicas before it sends its data to the first. */
const SERVER = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];

/** Starts an empty Redis that keeps nothing on disk. */
export async function startRedis(settings: RedisSettings = {}): Promise<TestRedis> {
  const port = settings.port ?? (await freePort());
  const dir = await mkdtemp(join(tmpdir(), "ow-redis-"));
  const config = join(dir, "sentinel.conf");
  if (settings.sentinel !== undefined) await writeFile(config, settings.sentinel.join("\n"));
  const kind = settings.sentinel === undefined ? SERVER : [config, "--sentinel"];
  const common = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir];
  const args = [...kind, ...common, ...(settings.args ?? [])];
  let running = await launch(args);
  const control = new Redis({ ...settings.connect, port, lazyConnect: true });
  // A failure after a kill is reported by the command itself.
  control.on("error", () => {});
  await control.ping();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    command: (name, ...args) => control.callBuffer(name, ...args),
    signal: (name) => process.kill(running.pid, name),
    kill: () => running.end(),
    async restart() {
      running = await launch(args);
      await control.ping();
    },
    async stop() {
      control.disconnect();
      await running.end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function launch(args: readonly string[]) {
  const child = spawn("sh", ["-c", WATCHED, "sh", inject("redisProgram"), ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [line] = await once(child.stdout, "data");
  // Further output is not needed, but must be read, or the server would block.
  child.stdout.resume();
  return {
    pid: Number.parseInt(String(line), 10),
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}

/** Below the ports that Linux gives to connections and to servers that ask for any. */
const PORTS = { first: 10_240, count: 20_000 };

/** Returns a port that is free, and that no connection of another process takes before a server listens on it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
