import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";

/** A Redis Cluster of three masters, or one server, on loopback ports. */
export interface BenchRedis extends AsyncDisposable {
  /** The value of `REDIS_URL`. */
  readonly url: string;
}

const SLOTS = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const;
const START_TIMEOUT_MS = 20_000;

/** Starts one server on a loopback port, so that it is reached as the nodes of a cluster are. */
export async function startServer(program: string): Promise<BenchRedis> {
  const node = await startNode(program, []);
  return { url: `redis://127.0.0.1:${node.port}`, [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() };
}

/** Starts three masters, which share the slots. */
export async function startCluster(program: string): Promise<BenchRedis> {
  const nodes = await Promise.all(
    SLOTS.map(async () => {
      const busPort = await freePort();
      return {
        busPort,
        ...(await startNode(program, ["--cluster-enabled", "yes", "--cluster-port", `${busPort}`])),
      };
    }),
  );
  await Promise.all(
    SLOTS.map(([from, to], n) => nodes[n]?.control.call("cluster", "addslotsrange", from, to)),
  );
  for (const { port, busPort } of nodes) {
    await nodes[0]?.control.call("cluster", "meet", "127.0.0.1", port, busPort);
  }
  const isReady = async () => {
    const states = await Promise.all(nodes.map(({ control }) => control.cluster("INFO")));
    return states.map(String).every((text) => /state:ok/.test(text) && /cluster_size:3/.test(text));
  };
  if (!(await waitUntil(isReady, START_TIMEOUT_MS))) throw new Error("the cluster did not form");
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    },
  };
}

async function startNode(program: string, args: readonly string[]) {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-node-"));
  const address = ["--port", `${port}`, "--bind", "127.0.0.1"];
  const child = spawn(program, [...address, "--save", "", "--dir", dir, ...args], { stdio: "ignore" });
  await once(child, "spawn");
  const control = new Redis({ port, lazyConnect: true, maxRetriesPerRequest: null });
  // The first attempts meet a server that does not listen yet.
  control.on("error", () => {});
  await control.ping();
  return {
    port,
    control,
    async [Symbol.asyncDispose]() {
      control.disconnect();
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
