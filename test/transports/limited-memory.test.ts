import { afterAll, beforeAll, expect, test } from "vitest";
import { floodWith, largeBatch, METRICS_REQUEST, OPENAPI_REQUEST } from "../helpers/attacks/floods.ts";
import { startTarget, type Target } from "../helpers/attacks/hostility.ts";
import { untilStill } from "../helpers/attacks/until-still.ts";
import { SERVER_PROGRAM } from "../helpers/servers/server-process.ts";

/** The memory of a replica in compose and in the chart. */
const LIMIT_MIB = 512;
const OLD_SPACE_MIB = 256;
/** A flood of five minutes: ONCEWARD_TEST_FLOOD_SECONDS=300. */
const FLOOD_MS = Number(process.env.ONCEWARD_TEST_FLOOD_SECONDS ?? 0) * 1000;
/** Makes the process divide its budgets as in a container of that size; works without root or cgroups. */
const AS_IN_CONTAINER = `data:text/javascript,process.constrainedMemory=()=>${LIMIT_MIB * 1024 * 1024}`;

let target: Target;

beforeAll(async () => {
  const program = [`--max-old-space-size=${OLD_SPACE_MIB}`, "--import", AS_IN_CONTAINER, ...SERVER_PROGRAM];
  target = await startTarget(undefined, { ONCEWARD_REQUEST_TIMEOUT: "60s" }, program);
});

afterAll(() => target?.end());

async function isLive(): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${target.server.managementPort}/livez`);
  expect(await answer.text()).toBe("ok\n");
}

test("a replica with 512 MiB survives floods of requests whose answers nobody reads, and serves others", {
  timeout: FLOOD_MS + 120_000,
}, async () => {
  const batch = await largeBatch(target);
  const { httpPort, managementPort } = target.server;
  const endMs = performance.now() + FLOOD_MS;
  do {
    const floods = await Promise.all([
      floodWith(httpPort, 40, batch.repeat(16)),
      floodWith(httpPort, 200, OPENAPI_REQUEST.repeat(16)),
      floodWith(managementPort, 20, METRICS_REQUEST.repeat(16)),
    ]);
    const sockets = floods.flat();
    const written = () => sockets.reduce((bytes, { socket }) => bytes + socket.bytesWritten, 0);
    await untilStill(written, isLive);
    await target.expectUnharmed();
    expect(await target.server.rssMb()).toBeLessThan(LIMIT_MIB);
    for (const { socket } of sockets) socket.destroy();
  } while (performance.now() < endMs);
});
