import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import { createFileSender, etagOf } from "./static-files.ts";

const MIB = 1024 * 1024;
const BYTES = Buffer.alloc(4 * MIB);
const FILE = {
  type: "text/plain",
  immutable: true,
  encodings: [{ encoding: "identity" as const, bytes: BYTES, etag: etagOf(BYTES) }],
};

/** A response that its peer does not read until the test closes it. */
class UnreadResponse extends EventEmitter {
  statusCode = 0;
  readonly headers = new Map<string, unknown>();
  readonly end = vi.fn();
  readonly setTimeout = vi.fn();
  setHeader = (name: string, value: unknown) => void this.headers.set(name, value);
  removeHeader = (name: string) => void this.headers.delete(name);
  getHeaderNames = () => [...this.headers.keys()];
  writeHead(status: number, headers: object = {}) {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.headers.set(name, value);
  }
}

function send(sendFile: ReturnType<typeof createFileSender>, remoteAddress: string): UnreadResponse {
  const response = new UnreadResponse();
  const request = { method: "GET", headers: {}, socket: { remoteAddress } };
  sendFile(FILE, request as unknown as IncomingMessage, response as unknown as ServerResponse);
  return response;
}

test("beyond 8 MiB that an address has not read, it gets 503 until an answer has been read", () => {
  const sendFile = createFileSender();
  const first = send(sendFile, "10.0.0.1");
  expect(first.statusCode).toBe(200);
  expect(send(sendFile, "10.0.0.1").statusCode).toBe(200);
  const refused = send(sendFile, "10.0.0.1");
  expect([refused.statusCode, Object.fromEntries(refused.headers)]).toEqual([
    503,
    { "retry-after": "1", "cache-control": "no-store" },
  ]);
  expect(send(sendFile, "10.0.0.2").statusCode).toBe(200);
  first.emit("close");
  expect(send(sendFile, "10.0.0.1").statusCode).toBe(200);
});

test("all addresses have 32 MiB together; a peer that reads nothing is cut after 30 s", () => {
  const sendFile = createFileSender();
  const answers = Array.from({ length: 9 }, (_, n) => send(sendFile, `10.0.0.${n}`));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([...Array(8).fill(200), 503]);
  expect(answers[0]?.setTimeout).toHaveBeenCalledWith(30_000, expect.any(Function));
});
