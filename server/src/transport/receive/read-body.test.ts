import { once } from "node:events";
import { Readable } from "node:stream";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Principal } from "../../domain/tenant.ts";
import { createInboundBudget } from "../bounds/memory-budgets.ts";
import { createMessageReader, createMessageSplitter, frameMessage, readBody } from "./read-body.ts";

const OPERATOR: Principal = { role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY };

test("a body whose sender has left before it is read is CANCELLED", async () => {
  const body = new Readable({ read() {} }).destroy();
  await once(body, "close");
  const reading = readBody(body, createMessageReader(1), createInboundBudget().ofConnection(), OPERATOR);
  await expect(reading).rejects.toMatchObject({ reason: "CANCELLED" });
});

const MAX_BYTES = 100;
const MESSAGE = Buffer.from("a message of some bytes");

function read(...chunks: readonly Uint8Array[]) {
  const reader = createMessageReader(MAX_BYTES);
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  return reader.end();
}

/** The frame in pieces of so many bytes. */
function pieces(frame: Buffer, bytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(frame.byteLength / bytes) }, (_, i) =>
    frame.subarray(i * bytes, (i + 1) * bytes),
  );
}

test.each([1, 4, 5, 6, 1000])("a message is read whole, however it is cut: into %i bytes", (bytes) => {
  expect(read(...pieces(frameMessage(MESSAGE), bytes))).toEqual({ message: MESSAGE, compressed: false });
});

test("an empty message is a message", () => {
  expect(read(frameMessage(Buffer.alloc(0))).message).toEqual(Buffer.alloc(0));
});

test("the flag in front of a message tells that it is compressed", () => {
  const frame = frameMessage(MESSAGE);
  frame[0] = 1;
  expect(read(frame).compressed).toBe(true);
});

test("a message does not keep what was read with it", () => {
  const frame = frameMessage(MESSAGE);
  const reader = createMessageReader(MAX_BYTES);
  reader.push(frame);
  frame.fill(0);
  expect(reader.end().message).toEqual(MESSAGE);
});

describe("what is refused", () => {
  test("a message over the limit, before it is read", () => {
    const reader = createMessageReader(MAX_BYTES);
    expect(() => reader.push(Buffer.from([0, 0, 0, 0, MAX_BYTES + 1]))).toThrow(
      expect.objectContaining({ reason: "INVALID_REQUEST" }),
    );
  });

  test("a flag that does not exist", () => {
    const reader = createMessageReader(MAX_BYTES);
    expect(() => reader.push(Buffer.from([2, 0, 0, 0, 1, 1]))).toThrow(
      expect.objectContaining({ code: Code.InvalidArgument }),
    );
  });

  test("what comes after a message, before more of it is kept", () => {
    const reader = createMessageReader(MAX_BYTES);
    reader.push(frameMessage(MESSAGE));
    expect(() => reader.push(Buffer.alloc(1))).toThrow(expect.objectContaining({ code: Code.Unimplemented }));
  });

  test.each<[string, Buffer[]]>([
    ["no message", []],
    ["a part of its head", [Buffer.from([0, 0, 0])]],
    ["a part of it", [frameMessage(MESSAGE).subarray(0, 10)]],
    ["two messages", [frameMessage(MESSAGE), frameMessage(MESSAGE)]],
    ["two messages at once", [Buffer.concat([frameMessage(MESSAGE), frameMessage(MESSAGE)])]],
  ])("%s", (_name, chunks) => {
    expect(() => read(...chunks)).toThrow(expect.objectContaining({ code: Code.Unimplemented }));
  });
});

describe("a stream's messages", () => {
  test.each([1, 3, 5, 7, 1000])("come out of pieces of %d bytes as they went in", (size) => {
    const messages = ["", "a", "b".repeat(300), ""].map((text) => Buffer.from(text));
    const whole = Buffer.concat(messages.map((message) => frameMessage(message)));
    const splitter = createMessageSplitter(300);
    const out: Buffer[] = [];
    for (let at = 0; at < whole.byteLength; at += size) {
      splitter.push(whole.subarray(at, at + size));
      for (let next = splitter.next(); next !== undefined; next = splitter.next()) out.push(next);
      const done = at + size >= whole.byteLength;
      if (done) expect(splitter.hasPartialMessage()).toBe(false);
    }
    expect(out).toEqual(messages);
  });

  test("are known not to be all there", () => {
    const splitter = createMessageSplitter(100);
    expect(splitter.hasPartialMessage()).toBe(false);
    splitter.push(frameMessage(Buffer.from("abc")).subarray(0, 6));
    expect(splitter.next()).toBeUndefined();
    expect(splitter.hasPartialMessage()).toBe(true);
  });

  test("that are too long, or compressed, are refused by their heads", () => {
    const long = createMessageSplitter(100);
    long.push(Buffer.of(0, 0, 0, 0, 101));
    expect(() => long.next()).toThrow("Received message larger than max (101 vs 100)");
    const compressed = createMessageSplitter(100);
    compressed.push(Buffer.of(1, 0, 0, 0, 1));
    expect(() => compressed.next()).toThrow("compressed");
  });
});

test("a message is framed with the bytes that follow it", () => {
  expect(frameMessage(Buffer.from("ab"), Buffer.from("c"))).toEqual(Buffer.from("\0\0\0\0\x03abc", "latin1"));
});

test("messages that came together stay as they are when more comes", () => {
  const splitter = createMessageSplitter(MAX_BYTES);
  const both = Buffer.concat([frameMessage(MESSAGE), frameMessage(MESSAGE)]);
  splitter.push(both.subarray(0, both.byteLength - 3));
  const first = splitter.next();
  splitter.push(both.subarray(both.byteLength - 3));
  splitter.push(frameMessage(Buffer.from("another")));
  expect([first, splitter.next(), splitter.next()]).toEqual([MESSAGE, MESSAGE, Buffer.from("another")]);
});
