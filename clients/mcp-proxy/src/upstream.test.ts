import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectUpstream, wasNotSent } from "./upstream.ts";

const MIB = 1024 * 1024;
const REQUEST = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "refund" } } as const;

async function connectTo(type: string, ...chunks: readonly string[]) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", type);
      for (const chunk of chunks) response.write(chunk);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const transport = connectUpstream({ kind: "url", url, headers: {} }, () => {});
  const errors: string[] = [];
  transport.onerror = ({ message }) => errors.push(message);
  const messages = vi.fn();
  transport.onmessage = messages;
  await transport.start();
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(async () => {
    await transport.close();
    await close();
  });
  return { transport, errors, messages, close };
}

const answer = (bytes: number) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, result: { text: "x".repeat(bytes) } });

test("an answer in JSON of more than 10 MiB is not read to its end", async () => {
  const { transport, messages } = await connectTo("application/json", answer(11 * MIB));
  await expect(transport.send(REQUEST)).rejects.toThrow("a message has more than 10485760 bytes");
  expect(messages).not.toHaveBeenCalled();
});

test("a stream may have more than 10 MiB, but none of its messages", async () => {
  const event = (bytes: number) => `data: ${answer(bytes)}\r\n\r\n`;
  const { transport, messages, errors } = await connectTo(
    "text/event-stream",
    event(6 * MIB),
    event(6 * MIB),
    event(11 * MIB),
  );
  await transport.send(REQUEST);
  await vi.waitUntil(() => errors.length > 0, 30_000);
  expect(errors[0]).toContain("a message has more than 10485760 bytes");
  expect(messages).toHaveBeenCalledTimes(2);
});

test("a message to a port without a server, or to a process that has ended, was not sent", async () => {
  const { transport, close } = await connectTo("application/json");
  await close();
  const process = connectUpstream({ kind: "command", command: "true", args: [], env: {} }, () => {});
  const ended = Promise.withResolvers<void>();
  process.onclose = ended.resolve;
  await process.start();
  await ended.promise;
  const ends = await Promise.allSettled([transport, process].map((each) => each.send(REQUEST)));
  expect(ends.map((end) => end.status === "rejected" && wasNotSent(end.reason))).toEqual([true, true]);
  expect(wasNotSent(new TypeError("fetch failed", { cause: { code: "UND_ERR_SOCKET" } }))).toBe(false);
  const refused = [401, 403, 404, 429, 500, 503].map((code) => wasNotSent({ code }));
  expect(refused).toEqual([true, true, true, true, false, false]);
});
