import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CompletedSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import type { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { encodeEffect, replay } from "./result-codec.ts";

function replayed(result: MessageInitShape<typeof ResultSchema>): unknown {
  return replay(create(CompletedSchema, { result }));
}

function fulfilled(value: unknown): PromiseSettledResult<unknown> {
  return { status: "fulfilled", value };
}

test.each([
  ["undefined stays undefined", undefined, undefined],
  ["a Date becomes its ISO text", new Date(0), "1970-01-01T00:00:00.000Z"],
])("%s", (_, value, expected) => {
  expect(replayed(encodeEffect(fulfilled(value)))).toEqual(expected);
});

test.each([
  ["a BigInt", 1n],
  ["a function", () => {}],
  ["a symbol", Symbol("s")],
])("%s is refused as no JSON", (_, value) => {
  expect(() => encodeEffect(fulfilled(value))).toThrow(
    expect.objectContaining({ reason: "RESULT_NOT_JSON" }),
  );
});
