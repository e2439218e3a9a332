import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { OncewardError, ResultUnavailableError, TerminalError } from "../errors/errors.ts";
import { CompletedSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind, type ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { encodeEffect, encodeWithoutValue, replay } from "./result-codec.ts";

function replayed(result: MessageInitShape<typeof ResultSchema>): unknown {
  return replay(create(CompletedSchema, { result }));
}

function fulfilled(value: unknown): PromiseSettledResult<unknown> {
  return { status: "fulfilled", value };
}

test.each([
  ["undefined stays undefined", undefined, undefined],
  ["null stays null", null, null],
  ["an empty text stays one", "", ""],
  ["a structure stays equal", { a: [1, "ü", { b: false }] }, { a: [1, "ü", { b: false }] }],
  ["a Date becomes its ISO text", new Date(0), "1970-01-01T00:00:00.000Z"],
])("%s", (_, value, expected) => {
  expect(replayed(encodeEffect(fulfilled(value)))).toEqual(expected);
});

const circular: { self?: unknown } = {};
circular.self = circular;

test.each([
  ["a BigInt", 1n],
  ["a circular value", circular],
  ["a function", () => {}],
  ["a symbol", Symbol("s")],
])("%s is refused as no JSON", (_, value) => {
  expect(() => encodeEffect(fulfilled(value))).toThrow(
    expect.objectContaining({ reason: "RESULT_NOT_JSON" }),
  );
});

test("a result larger than any policy allows is refused before it is sent", () => {
  const value = "x".repeat(1024 * 1024);
  expect(() => encodeEffect(fulfilled(value))).toThrow(
    expect.objectContaining({ reason: "RESULT_TOO_LARGE" }),
  );
});

test("a terminal error comes back with its message and details", () => {
  const result = encodeEffect({ status: "rejected", reason: new TerminalError("declined", { code: 51 }) });
  expect(result.kind).toBe(Result_Kind.FAILURE);
  expect(() => replayed(result)).toThrow(
    expect.objectContaining({ message: "declined", details: { code: 51 } }),
  );
  expect(() => replayed(result)).toThrow(TerminalError);
});

test("a failure that another client stored is a terminal error of any shape", () => {
  const result = { kind: Result_Kind.FAILURE, payload: Buffer.from("[1]"), contentType: "application/json" };
  expect(() => replayed(result)).toThrow(
    expect.objectContaining({
      name: "TerminalError",
      message: "The operation has a terminal failure.",
      details: [1],
    }),
  );
});

test("a value that could not be stored is distinguished from undefined", () => {
  const why = new OncewardError("RESULT_TOO_LARGE", "too large");
  const lost = encodeWithoutValue(fulfilled(1n), why);
  expect(() => replayed(lost)).toThrow(ResultUnavailableError);
  expect(() => replayed(lost)).toThrow(expect.objectContaining({ reason: "RESULT_LOST" }));
});

test("a result whose retention has ended is distinguished from undefined", () => {
  expect(() => replay(create(CompletedSchema, { resultExpired: true }))).toThrow(
    expect.objectContaining({ reason: "RESULT_EXPIRED" }),
  );
});

test("a result that another client stored in another format is refused rather than guessed", () => {
  const result = {
    kind: Result_Kind.SUCCESS,
    payload: Buffer.from("{}"),
    contentType: "application/x-protobuf",
  };
  expect(() => replayed(result)).toThrow(expect.objectContaining({ reason: "RESULT_NOT_JSON" }));
});
