import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createRequestBudget } from "../bounds/memory-budgets.ts";
import { answerInTurns } from "./port.ts";

/** A connection of an address, as far as turns look at it. */
function connectFrom(remoteAddress: string) {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress,
    destroyed: false,
    destroy() {
      socket.destroyed = true;
    },
  });
  return socket;
}

let answered: ServerResponse[];
let listener: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(() => {
  answered = [];
  const budget = createRequestBudget(1000, 100_000);
  listener = answerInTurns((_, response) => void answered.push(response as ServerResponse), budget);
});

function send(socket: ReturnType<typeof connectFrom>, rawHeaders: readonly string[] = []): EventEmitter {
  const response = Object.assign(new EventEmitter(), { destroy: vi.fn() });
  listener({ socket, rawHeaders } as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("a request is answered when the answer before it is with the operating system", () => {
  const socket = connectFrom("10.0.0.1");
  const [first, second] = [send(socket), send(socket)];
  expect(answered).toEqual([first]);
  first?.emit("close");
  expect(answered).toEqual([first, second]);
});

test("a connection with more than 16 waiting requests is cut, and what follows is not answered", () => {
  const socket = connectFrom("10.0.0.1");
  for (let request = 0; request < 17; request++) send(socket);
  expect(socket.destroyed).toBe(false);
  send(socket);
  expect(socket.destroyed).toBe(true);
  send(socket);
  expect(answered).toHaveLength(1);
});

test("a connection without room for headers is cut, and has room again after an answer", () => {
  const [slow, other] = [connectFrom("10.0.0.1"), connectFrom("10.0.0.1")];
  const first = send(slow, ["x", "v".repeat(40_000)]);
  send(other, ["x", "v".repeat(40_000)]);
  expect([slow.destroyed, other.destroyed]).toEqual([false, true]);
  first.emit("close");
  send(slow, ["x", "v".repeat(40_000)]);
  expect(slow.destroyed).toBe(false);
});

test("once a connection is cut, no more of what was read from it is parsed", async () => {
  const parsed = vi.fn();
  const server = createServer(listener).on("request", parsed).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  socket.resume().write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2000));
  await once(socket, "close");
  expect(parsed).toHaveBeenCalledTimes(18);
});

test("a request whose connection is cut takes no part of a later turn", async () => {
  const sent = Array.from({ length: 140 }, () => send(connectFrom("10.0.0.1")));
  for (const response of sent.slice(64, 128)) response.emit("close");
  await nextTurn();
  expect(answered).toEqual([...sent.slice(0, 64), ...sent.slice(128)]);
});

test("an address has 64 requests in a turn of the event loop, and delays no other address", async () => {
  for (let connection = 0; connection < 150; connection++) send(connectFrom("10.0.0.1"));
  expect(answered).toHaveLength(64);
  const other = send(connectFrom("10.0.0.2"));
  expect(answered.at(-1)).toBe(other);
  await nextTurn();
  expect(answered).toHaveLength(129);
  await nextTurn();
  expect(answered).toHaveLength(151);
});
