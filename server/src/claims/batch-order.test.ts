import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { BatchRequestItemSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { chunksOf, roundsOf } from "./batch-order.ts";

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

describe("rounds", () => {
  test("items on different records share a round", () => {
    expect(rounds(claim("a1"), complete("a2"), lookup("b1"))).toEqual([[0, 1, 2]]);
  });

  test("items on one record are in successive rounds, and other items are in the first", () => {
    expect(rounds(claim("a1"), complete("a1"), claim("a2"), lookup("a1"))).toEqual([[0, 2], [1], [3]]);
  });

  test("consecutive claims share a round, and so do consecutive lookups", () => {
    expect(rounds(claim("a1"), claim("a1"), lookup("a1"), lookup("a1"), claim("a1"))).toEqual([
      [0, 1],
      [2, 3],
      [4],
    ]);
  });

  test("claims that accept ambiguity share no round with claims that don't", () => {
    expect(rounds(claim("a1"), claim("a1", true), claim("a1", true), claim("a1"))).toEqual([
      [0],
      [1, 2],
      [3],
    ]);
  });

  test("one key in two namespaces is two records", () => {
    expect(rounds(complete("a1"), complete("b1"))).toEqual([[0, 1]]);
  });

  test("a namespace and a key are never confused with others of the same letters", () => {
    const item = (namespace: string, key: string): ItemRequest => ({
      case: "complete",
      value: { namespace, key },
    });
    expect(rounds(item("a", "bc"), item("ab", "c"))).toEqual([[0, 1]]);
  });

  test("empty items keep their order", () => {
    expect(rounds({ case: undefined }, claim("a1"), { case: undefined })).toEqual([[0, 1], [2]]);
  });
});

describe("chunks", () => {
  const completion = (entries: number) =>
    create(BatchRequestItemSchema, {
      request: {
        case: "complete",
        value: {
          result: {
            metadata: Object.fromEntries(Array.from({ length: entries }, (_, i) => [`name-${i}`, "v"])),
          },
        },
      },
    });
  const small = create(BatchRequestItemSchema, { request: { case: "claim", value: {} } });

  test("a round without much metadata is one chunk", () => {
    expect(chunksOf([small, completion(64), small], [0, 1, 2])).toEqual([[0, 1, 2]]);
  });

  test("a round with much metadata is divided where a chunk is full, and keeps its order", () => {
    const items = Array.from({ length: 70 }, () => completion(64));
    const chunks = chunksOf(items, [...items.keys()]);
    expect(chunks.map((chunk) => chunk.length)).toEqual([32, 32, 6]);
    expect(chunks.flat()).toEqual([...items.keys()]);
  });
});
