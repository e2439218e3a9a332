import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { answerInTurns } from "./turns.ts";

/** Sends requests at once. Returns the connection, and a mock that was called for each request that was parsed. */
async function send(requests: number, answer: RequestListener) {
  const parsed = vi.fn();
  const server = createServer(answerInTurns(answer)).on("request", parsed).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const socket: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.resume().write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(requests));
  return { socket, parsed };
}

test("a request of a connection is answered when the answer before it is sent", async () => {
  const answered: ServerResponse[] = [];
  const { parsed } = await send(3, (_, response) => void answered.push(response));
  await vi.waitUntil(() => parsed.mock.calls.length === 3, 30_000);
  for (let answer = 1; answer <= 3; answer++) {
    expect(answered).toHaveLength(answer);
    answered.at(-1)?.end();
    if (answer < 3) await vi.waitUntil(() => answered.length > answer, 30_000);
  }
});

test("a connection with more than 16 waiting requests is cut, and no further bytes are parsed", async () => {
  const { socket, parsed } = await send(2000, () => {});
  await once(socket, "close");
  expect(parsed).toHaveBeenCalledTimes(18);
});
