import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { BatchRequestItemSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { roundsOf } from "./batch-rounds.ts";

type ItemRequest = NonNullable<MessageInitShape<typeof BatchRequestItemSchema>["request"]>;

const id = (name: string) => ({ namespace: name.slice(0, 1), key: name.slice(1) });
const claim = (name: string, acceptAmbiguous = false): ItemRequest => ({
  case: "claim",
  value: { ...id(name), acceptAmbiguous },
});
const complete = (name: string): ItemRequest => ({ case: "complete", value: id(name) });
const lookup = (name: string): ItemRequest => ({ case: "lookup", value: id(name) });

function rounds(...requests: ItemRequest[]) {
  return roundsOf(requests.map((request) => create(BatchRequestItemSchema, { request })));
}

test("all records at once", () => {
  expect(rounds(claim("a1"), complete("a2"), lookup("b1"))).toEqual([[0, 1, 2]]);
});

test("calls on one record one after another, and others with the first of them", () => {
  expect(rounds(claim("a1"), complete("a1"), claim("a2"), lookup("a1"))).toEqual([[0, 2], [1], [3]]);
});

test("claims in a row, and lookups in a row, together", () => {
  expect(rounds(claim("a1"), claim("a1"), lookup("a1"), lookup("a1"), claim("a1"))).toEqual([
    [0, 1],
    [2, 3],
    [4],
  ]);
});

test("claims apart that differ in whether they accept ambiguity", () => {
  expect(rounds(claim("a1"), claim("a1", true), claim("a1", true), claim("a1"))).toEqual([[0], [1, 2], [3]]);
});

test("one key in two namespaces is two records", () => {
  expect(rounds(complete("a1"), complete("b1"))).toEqual([[0, 1]]);
});

test("a namespace and a key are never mistaken for others of the same letters", () => {
  const item = (namespace: string, key: string): ItemRequest => ({
    case: "complete",
    value: { namespace, key },
  });
  expect(rounds(item("a", "bc"), item("ab", "c"))).toEqual([[0, 1]]);
});

test("items that say nothing come in order, too", () => {
  expect(rounds({ case: undefined }, claim("a1"), { case: undefined })).toEqual([[0, 1], [2]]);
});
