import { Readable } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { OncewardError } from "../errors/errors.ts";
import { CompletedSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { CheckpointSchema } from "../gen/onceward/v1/record_pb.ts";
import { type Codec, jsonCodec, protobufCodec } from "./codec.ts";
import { encodeEffect, replay } from "./result-codec.ts";

/** What a repeat gets of a value that was stored. */
function replayed<T>(value: T, codec: Codec<T>, readBy: Codec<T> = codec): T {
  const result = encodeEffect({ status: "fulfilled", value }, codec);
  return replay(create(CompletedSchema, { result }), readBy);
}

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

class Account {
  readonly #balance = 1;
  readonly id = "a-1";
  get balance(): number {
    return this.#balance;
  }
}

class Hidden {
  readonly #secret = 1;
  reveal(): number {
    return this.#secret;
  }
}

class Query {
  readonly table = "charges";
  // biome-ignore lint/suspicious/noThenProperty: as of a query that runs when it is awaited.
  then(): void {}
}

test.each<[string, unknown]>([
  ["a BigInt at /1", [0, 1n]],
  ["a number beyond 2^53 - 1 at /lines/0/id; pass it as text", { lines: [{ id: 2 ** 53 }] }],
  ["NaN at /a", { a: Number.NaN }],
  ["a text with a lone surrogate at /a", { a: "\ud800" }],
  ["an invalid Date at /a", { a: new Date(Number.NaN) }],
  ["a function at /a", { a: () => {} }],
  ["a Map at /a~1b; pass Object.fromEntries(map)", { "a/b": new Map([["a", 1]]) }],
  ["a Set at /a; pass [...set]", { a: new Set([1]) }],
  ["a Promise at /0; await it", [Promise.resolve(1)]],
  ["a Query at /a; await it", { a: new Query() }],
  ["a Error at /a", { a: Object.assign(new Error("declined"), { code: 51 }) }],
  ["a FormData at /a", { a: new FormData() }],
  ["a URLSearchParams at /a", { a: new URLSearchParams("a=b") }],
  ["a Blob at /a", { a: new Blob(["a"]) }],
  ["a ArrayBuffer at /a", { a: new ArrayBuffer(1) }],
  ["a RegExp at /a", { a: /a/ }],
  ["a Iterator at /a", { a: [1].values() }],
  ["a ReadableStream at /a", { a: new Blob(["a"]).stream() }],
  ["a Readable at /a", { a: Readable.from([1]) }],
  ["a Account at /a", { a: new Account() }],
  ["a Hidden at /a", { a: new Hidden() }],
])("a result refuses %s", (message, value) => {
  const error = expect.objectContaining({
    reason: "RESULT_NOT_JSON",
    message: expect.stringContaining(`it has ${message}`),
  });
  expect(() => jsonCodec.encode(value)).toThrow(error);
});

test("generators and a symbol are refused", () => {
  expect(() => jsonCodec.encode(Symbol("s"))).toThrow(expect.objectContaining({ reason: "RESULT_NOT_JSON" }));
  for (const generate of [function* () {}, async function* () {}])
    expect(() => jsonCodec.encode({ rows: generate() })).toThrow(/ at \/rows;/);
});

test("an instance or a class of arrays counts by its members unless it shows other content", () => {
  class Row {
    readonly id = 1;
    describe(): string {
      return "";
    }
  }
  class Rows extends Array<Row> {}
  expect(replayed<unknown>(Rows.of(new Row()), jsonCodec)).toEqual([{ id: 1 }]);
});

test("a stored number that reading rounds is refused with its path", () => {
  const payload = Buffer.from('{"lines":[{"id":9007199254740993}]}');
  expect(() => jsonCodec.decode({ payload, contentType: "application/json" })).toThrow(
    expect.objectContaining({
      reason: "RESULT_NOT_JSON",
      message: expect.stringContaining("at /lines/0/id"),
    }),
  );
});

test("a Map with a JSON form of its own is stored in it", () => {
  const map = Object.assign(new Map([["a", 1]]), { toJSON: () => ({ a: 1 }) });
  expect(replayed<unknown>({ map }, jsonCodec)).toEqual({ map: { a: 1 } });
});
