import { expect, onTestFinished, test } from "vitest";
import {
  floodWith,
  largeBatch,
  METRICS_REQUEST,
  OPENAPI_REQUEST,
  WHO_AM_I_REQUEST,
} from "../support/attacks/floods.ts";
import { useTarget } from "../support/attacks/hostility.ts";
import { untilStill } from "../support/attacks/until-still.ts";
import { openSocket, type RawSocket } from "../support/network/raw-socket.ts";

/** Each peer sends requests and reads no answer. */
const target = useTarget({ ONCEWARD_REQUEST_TIMEOUT: "60s" });

/** As `floodWith`, until the test ends. */
async function flood(port: number, connections: number, bytes: string): Promise<readonly RawSocket[]> {
  const sockets = await floodWith(port, connections, bytes);
  onTestFinished(() => {
    for (const { socket } of sockets) socket.destroy();
  });
  return sockets;
}

async function isLive(): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${target.server.managementPort}/livez`);
  expect(await answer.text()).toBe("ok\n");
}

/** Resolves when the server has read and written all that it will while no one reads. */
async function untilServed(sockets: readonly RawSocket[]): Promise<void> {
  const sum = () => sockets.reduce((bytes, { socket }) => bytes + socket.bytesWritten, 0);
  await untilStill(sum, isLive);
}

test("pipelined batches of results on many connections cost one answer a connection", async () => {
  const request = await largeBatch(target);
  await untilServed(await flood(target.server.httpPort, 40, request.repeat(16)));
  await target.expectUnharmed();
});

test("a connection with more requests than may wait is cut, on each port of HTTP", async () => {
  for (const [port, path] of [
    [target.server.httpPort, "/openapi.yaml"],
    [target.server.managementPort, "/metrics"],
  ] as const) {
    const { socket, send, closed } = await openSocket(port);
    await send(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`.repeat(100));
    socket.resume();
    await closed;
  }
  await target.expectUnharmed();
});

test("pipelined scrapes that no one reads cost bounded memory, and the probes are answered", async () => {
  const scrapes = METRICS_REQUEST.repeat(16);
  await untilServed(await flood(target.server.managementPort, 30, scrapes));
  await isLive();
  await target.expectUnharmed();
});

test("an anonymous burst on many connections delays probes little and costs bounded memory", async () => {
  const requests = WHO_AM_I_REQUEST.repeat(8) + OPENAPI_REQUEST.repeat(8);
  const sockets = await flood(target.server.httpPort, 400, requests);
  await isLive();
  await untilServed(sockets);
  await target.expectUnharmed();
});
