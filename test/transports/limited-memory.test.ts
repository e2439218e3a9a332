import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { budgetShareOf } from "../../server/src/transport/bounds/memory-limit.ts";
import type { BystanderReport, BystanderTask } from "../support/attacks/bystander-worker.ts";
import {
  floodGrpcWith,
  floodWith,
  floodWithBegunHeaders,
  grpcFloods,
  LONG_REQUEST,
  largeBatch,
  METRICS_REQUEST,
  OPENAPI_REQUEST,
  WHO_AM_I_REQUEST,
} from "../support/attacks/floods.ts";
import { startTarget, type Target } from "../support/attacks/hostility.ts";
import { untilStill } from "../support/attacks/until-still.ts";
import type { RawSocket } from "../support/network/raw-socket.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { canLimitMemory, createMemoryCgroup, type MemoryCgroup } from "../support/processes/memory-cgroup.ts";
import { SERVER_PROGRAM } from "../support/servers/server-process.ts";

/** A caller in a process of its own, whose calls are answered while a test floods the server. */
interface Bystander {
  /** Resolves when `count` more of its calls are answered. */
  served(count: number): Promise<void>;
  /** Ends the process, and returns what it saw. */
  end(): Promise<BystanderReport>;
}

const WORKER = fileURLToPath(new URL("../support/attacks/bystander-worker.ts", import.meta.url));
/** Floods come from 127.0.0.1: addresses have shares of their own. */
const OWN_ADDRESS = "127.0.0.2";

/** Starts a bystander that calls as the target's tenant. */
function startBystander({ server, tenant }: Target): Bystander {
  const { grpcPort, httpPort } = server;
  const task: BystanderTask = { grpcPort, httpPort, apiKey: tenant.apiKey, localAddress: OWN_ADDRESS };
  const child = fork(WORKER, [JSON.stringify(task)], { env: CHILD_ENVIRONMENT });
  let answers = 0;
  child.on("message", (message) => {
    if (typeof message === "number") answers = message;
  });
  return {
    async served(count) {
      const until = answers + count;
      await expect.poll(() => answers, { timeout: 60_000, interval: 10 }).toBeGreaterThanOrEqual(until);
    },
    async end() {
      const reported = new Promise<BystanderReport>((resolve) =>
        child.on("message", (message) => {
          if (typeof message === "object") resolve(message as BystanderReport);
        }),
      );
      const exited = once(child, "exit");
      child.send("end");
      const report = await reported;
      await exited;
      return report;
    },
  };
}

const MIB = 1024 * 1024;
/** The memory of a replica in compose and in the chart. */
const LIMIT_MIB = 512;
const OLD_SPACE_MIB = 256;
/** A flood of five minutes, which prints what a bystander and the process saw: ONCEWARD_TEST_FLOOD_SECONDS=300. */
const FLOOD_MS = Number(process.env.ONCEWARD_TEST_FLOOD_SECONDS ?? 0) * 1000;
/** Makes the process divide its budgets as in a container of that size, where no group can be made: without root. */
const AS_IN_CONTAINER = ["--import", `data:text/javascript,process.constrainedMemory=()=>${LIMIT_MIB * MIB}`];
/** As many requests as one read of a connection brings. */
const TINY_REQUESTS = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2400);
/** For each kind of call. */
const GRPC_CONNECTIONS = 8;
/** Calls of a bystander that are answered while the replies of the floods wait. */
const BYSTANDER_CALLS = 4;

let target: Target;
let group: MemoryCgroup | undefined;

beforeAll(async () => {
  group = createMemoryCgroup(LIMIT_MIB * MIB);
  const limit = group?.joinAsNode ?? AS_IN_CONTAINER;
  const program = [`--max-old-space-size=${OLD_SPACE_MIB}`, ...limit, ...SERVER_PROGRAM];
  target = await startTarget(undefined, { ONCEWARD_REQUEST_TIMEOUT: "60s" }, program);
});

afterAll(async () => {
  // Also says so if the test fails because the replica has ended.
  const wasAlive = target?.server.alive;
  await target?.end();
  group?.[Symbol.dispose]();
  expect(wasAlive).toBe(true);
});

test.runIf(canLimitMemory())("a process divides its budgets by the limit of its container", async () => {
  const source = new URL("../../server/src/transport/bounds/memory-limit.ts", import.meta.url);
  const print = `import(${JSON.stringify(source.href)}).then((limit) => console.log(limit.BUDGET_SHARE))`;
  const share = Number(await group?.run(process.execPath, ["--eval", print]));
  expect(share).toBeCloseTo(budgetShareOf(LIMIT_MIB * MIB), 10);
});

/** On a connection of its own: one that was kept may be closed by the server just when it is used again. */
async function isLive(): Promise<void> {
  const { managementPort } = target.server;
  const request = get({ host: "127.0.0.1", port: managementPort, path: "/livez", agent: false });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  expect(await text(answer)).toBe("ok\n");
}

/** Returns the processor time of the replica, in seconds. */
async function processorSeconds(): Promise<number> {
  const stat = await readFile(`/proc/${target.server.pid}/stat`, "utf8");
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return (user + system) / 100;
}

test("a replica with 512 MiB survives floods of unread answers, and serves others", {
  timeout: FLOOD_MS + 120_000,
}, async () => {
  onTestFailed(() => {
    // A replica that has ended says why in its last lines.
    process.stderr.write(`${target.server.output.slice(-40).join("\n")}\n`);
  });
  const batch = await largeBatch(target);
  const { httpPort, managementPort, grpcPort } = target.server;
  const flood = async (): Promise<readonly RawSocket[]> => {
    const opened = await Promise.all([
      floodWith(httpPort, 40, batch.repeat(16)),
      floodWith(httpPort, 200, OPENAPI_REQUEST.repeat(16)),
      floodWith(httpPort, 200, WHO_AM_I_REQUEST.repeat(16)),
      floodWith(httpPort, 400, OPENAPI_REQUEST + LONG_REQUEST.repeat(15)),
      floodWith(managementPort, 20, METRICS_REQUEST.repeat(16)),
      floodWith(managementPort, 12, METRICS_REQUEST + LONG_REQUEST.repeat(15)),
      floodWithBegunHeaders(grpcPort, 400),
      floodWith(httpPort, 400, TINY_REQUESTS),
      ...Object.values(grpcFloods(target)).map((calls) => floodGrpcWith(grpcPort, GRPC_CONNECTIONS, calls)),
    ]);
    return opened.flat();
  };
  const bystander = startBystander(target);
  const startedAtMs = performance.now();
  let [rounds, maxRssMib] = [0, 0];
  do {
    const sockets = await flood();
    await bystander.served(BYSTANDER_CALLS);
    const written = () => sockets.reduce((bytes, { socket }) => bytes + socket.bytesWritten, 0);
    await untilStill(written, isLive);
    await bystander.served(BYSTANDER_CALLS);
    expect(target.server.alive).toBe(true);
    // On a machine that the floods' own process shares, a background statement may be late, which is a warning.
    expect(target.server.output.filter((line) => /^\{"level":[56]0,/.test(line))).toEqual([]);
    const rssMib = await target.server.rssMb();
    expect(rssMib).toBeLessThan(LIMIT_MIB);
    maxRssMib = Math.max(maxRssMib, rssMib);
    for (const { socket } of sockets) socket.destroy();
    rounds++;
  } while (performance.now() < startedAtMs + FLOOD_MS);
  const seen = await bystander.end();
  if (FLOOD_MS === 0) {
    expect(seen.failures).toEqual([]);
    return;
  }
  const [elapsedS, usedS] = [(performance.now() - startedAtMs) / 1000, await processorSeconds()];
  const warnings = target.server.output.filter((line) => !line.startsWith('{"level":30,')).length;
  process.stdout.write(
    `${JSON.stringify({ rounds, elapsedS, processorS: usedS, maxRssMib, warnings, bystander: seen })}\n`,
  );
});
