import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createMessageReader, frameMessage } from "./grpc-messages.ts";

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
      expect.objectContaining({ code: Code.ResourceExhausted }),
    );
  });

  test("whatever comes behind a message, before more of it is kept", () => {
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
