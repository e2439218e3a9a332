import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTarget, type Target } from "../helpers/attacks/hostility.ts";
import { untilStill } from "../helpers/attacks/until-still.ts";
import { connectClient } from "../helpers/calls/clients.ts";
import { grant, success } from "../helpers/calls/verbs.ts";
import { pathOf } from "../helpers/network/raw-grpc.ts";
import { openSocket, type RawSocket } from "../helpers/network/raw-socket.ts";

/** Each peer sends requests and reads no answer. */
let target: Target;

beforeAll(async () => {
  target = await startTarget(undefined, { ONCEWARD_REQUEST_TIMEOUT: "60s" });
});

afterAll(() => target?.end());

/** Opens connections that read nothing, and sends the same bytes on each. */
async function floodWith(port: number, connections: number, bytes: string): Promise<readonly RawSocket[]> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => openSocket(port)));
  onTestFinished(() => {
    for (const { socket } of sockets) socket.destroy();
  });
  for (const { socket, send } of sockets) {
    socket.pause();
    void send(bytes);
  }
  return sockets;
}

async function isLive(): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${target.server.managementPort}/livez`);
  expect(await answer.text()).toBe("ok\n");
}

/** Resolves when the server has read and written all that it will while nobody reads. */
async function untilServed(sockets: readonly RawSocket[]): Promise<void> {
  const sum = () => sockets.reduce((bytes, { socket }) => bytes + socket.bytesWritten, 0);
  await untilStill(sum, isLive);
}

const RESULTS = 60;
const RESULT_BYTES = 60_000;

test("batches of results, pipelined by any caller on many connections, cost one answer a connection", async () => {
  const client = connectClient(target.server, target.tenant.apiKey);
  const keys = Array.from({ length: RESULTS }, (_, n) => ({ namespace: "reports", key: `report-${n}` }));
  for (const id of keys) {
    const { fencingToken } = await grant(client, id);
    await client.complete({ ...id, fencingToken, result: success("x".repeat(RESULT_BYTES)) });
  }
  const body = JSON.stringify({ items: keys.map((lookup) => ({ lookup })) });
  const head = [
    `POST ${pathOf("Batch")} HTTP/1.1`,
    "host: a",
    `authorization: Bearer ${target.tenant.apiKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ];
  const request = `${head.join("\r\n")}\r\n\r\n${body}`;
  await untilServed(await floodWith(target.server.httpPort, 40, request.repeat(16)));
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

test("pipelined scrapes that nobody reads cost bounded memory, and the probes are answered", async () => {
  const scrapes = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(16);
  await untilServed(await floodWith(target.server.managementPort, 30, scrapes));
  await isLive();
  await target.expectUnharmed();
});

test("a burst without a credential, on many connections, delays the probes by little and costs bounded memory", async () => {
  const whoAmI = [
    "POST /onceward.v1.IdentityService/WhoAmI HTTP/1.1",
    "host: a",
    "content-type: application/json",
  ];
  const request = `${whoAmI.join("\r\n")}\r\ncontent-length: 2\r\n\r\n{}`;
  const file = "GET /openapi.yaml HTTP/1.1\r\nhost: a\r\n\r\n";
  const sockets = await floodWith(target.server.httpPort, 400, request.repeat(8) + file.repeat(8));
  await isLive();
  await untilServed(sockets);
  await target.expectUnharmed();
});
