import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { OncewardError, TerminalError } from "../errors/errors.ts";
import { CompletedSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { CheckpointSchema, Result_Kind } from "../gen/onceward/v1/record_pb.ts";
import { bytesCodec, type Codec, jsonCodec, protobufCodec } from "./codec.ts";
import { encodeEffect, replay } from "./result-codec.ts";

/** What a repeat gets of a value that was stored. */
function replayed<T>(value: T, codec: Codec<T>, readBy: Codec<T> = codec): T {
  const result = encodeEffect({ status: "fulfilled", value }, codec);
  return replay(create(CompletedSchema, { result }), readBy);
}

test("bytes come back as they were", () => {
  const bytes = Uint8Array.of(0, 255, 10);
  expect(replayed(bytes, bytesCodec)).toEqual(bytes);
  expect(replayed(new Uint8Array(), bytesCodec)).toEqual(new Uint8Array());
});

test("a Protobuf message comes back as the message it was", () => {
  const message = create(CheckpointSchema, { name: "charged", state: Uint8Array.of(1) });
  expect(replayed(message, protobufCodec(CheckpointSchema))).toEqual(message);
  const { contentType } = protobufCodec(CheckpointSchema).encode(message);
  expect(contentType).toBe("application/protobuf; proto=onceward.v1.Checkpoint");
});

test("metadata beside the payload comes back", () => {
  const codec: Codec<{ status: string }> = {
    encode: ({ status }) => ({ payload: new Uint8Array(), contentType: "", metadata: { status } }),
    decode: ({ metadata = {} }) => ({ status: metadata.status ?? "" }),
  };
  expect(replayed({ status: "201" }, codec)).toEqual({ status: "201" });
});

test.each<[string, Codec<unknown>, Codec<unknown>, string]>([
  ["JSON, read as bytes", jsonCodec, bytesCodec as Codec<unknown>, "CODEC_FAILED"],
  ["bytes, read as JSON", bytesCodec as Codec<unknown>, jsonCodec, "RESULT_NOT_JSON"],
])("%s is refused rather than guessed", (_, writtenBy, readBy, reason) => {
  expect(() => replayed<unknown>(Uint8Array.of(1), writtenBy, readBy)).toThrow(
    expect.objectContaining({ name: "ResultUnavailableError", reason, cause: expect.any(Error) }),
  );
});

test("a failure is JSON with every codec", () => {
  const reason = new TerminalError("card declined", { code: 51 });
  const result = encodeEffect({ status: "rejected", reason }, bytesCodec);
  expect(result).toMatchObject({ kind: Result_Kind.FAILURE, contentType: "application/json" });
  expect(() => replay(create(CompletedSchema, { result }), bytesCodec)).toThrow(
    expect.objectContaining({ name: "TerminalError", message: "card declined", details: { code: 51 } }),
  );
});

test("a codec's error is the cause, unless it is an OncewardError itself", () => {
  const cause = new RangeError("no such shape");
  const throwing = (error: Error): Codec<string> => ({
    encode() {
      throw error;
    },
    decode: () => "",
  });
  const encode = (error: Error) => encodeEffect({ status: "fulfilled", value: "a" }, throwing(error));
  expect(() => encode(cause)).toThrow(expect.objectContaining({ reason: "CODEC_FAILED", cause }));
  const own = new OncewardError("RESULT_TOO_LARGE", "too large");
  expect(() => encode(own)).toThrow(own);
});

test.each([
  ["a Map", new Map([["a", 1]]), "a Map would be lost"],
  ["a Set in a member", { lines: new Set([1]) }, 'a Set in "lines" would be lost'],
  ["a Promise in an array", [Promise.resolve(1)], 'a Promise in "0" would be lost'],
])("JSON refuses %s, whose content it would drop in silence", (_, value, message) => {
  const error = expect.objectContaining({
    reason: "RESULT_NOT_JSON",
    message: expect.stringContaining(message),
  });
  expect(() => jsonCodec.encode(value)).toThrow(error);
});

test("a Map with a JSON form of its own is stored in it", () => {
  const map = Object.assign(new Map([["a", 1]]), { toJSON: () => ({ a: 1 }) });
  expect(replayed<unknown>({ map }, jsonCodec)).toEqual({ map: { a: 1 } });
});
