import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";

/** A Redis that the bench freezes, flushes and kills. */
export interface RedisProcess extends AsyncDisposable {
  readonly url: string;
  freeze(): void;
  thaw(): void;
  flush(): Promise<void>;
  kill(): Promise<void>;
  /** Starts it again, empty, after `kill`. */
  restart(): Promise<void>;
}

/** Starts Redis on its own Unix socket, so that it has the same address after a restart. */
export async function startRedisProcess(program: string): Promise<RedisProcess> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-redis-"));
  const socket = join(dir, "redis.sock");
  const control = new Redis({ path: socket, lazyConnect: true, maxRetriesPerRequest: null });
  // Commands fail by themselves while Redis is unreachable.
  control.on("error", () => {});
  const launch = async () => {
    const args = ["--port", "0", "--save", "", "--unixsocket", socket, "--dir", dir];
    const child = spawn(program, args, { stdio: "ignore" });
    await once(child, "spawn");
    await control.ping();
    return child;
  };
  let child = await launch();
  const end = async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return {
    url: `redis+unix://${socket}`,
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    async flush() {
      await control.flushall();
    },
    kill: end,
    async restart() {
      child = await launch();
    },
    async [Symbol.asyncDispose]() {
      control.disconnect();
      await end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
