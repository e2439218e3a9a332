import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { BatchRequestItemSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import { roundsOf } from "./batch-order.ts";

type ItemRequest = NonNullable<MessageInitShape<typeof BatchRequestItemSchema>["request"]>;

const id = (name: string) => ({ namespace: name.slice(0, 1), key: name.slice(1) });
const claim = (name: string, acceptAmbiguous = false): ItemRequest => ({
  case: "claim",
  value: { ...id(name), acceptAmbiguous },
});
const complete = (name: string): ItemRequest => ({ case: "complete", value: id(name) });
const lookup = (name: string): ItemRequest => ({ case: "lookup", value: id(name) });

function rounds(...requests: ItemRequest[]) {
  return roundsOf(requests.map((request) => create(BatchRequestItemSchema, { request }))).map((chunks) =>
    chunks.flat(),
  );
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

  test("claims that say that their key was created at different times share no round", () => {
    const at = (seconds: bigint, nanos: number): ItemRequest => ({
      case: "claim",
      value: { ...id("a1"), keyCreatedAt: { seconds, nanos } },
    });
    expect(rounds(claim("a1"), at(1n, 0), at(1n, 0), at(1n, 5), at(2n, 5))).toEqual([[0], [1, 2], [3], [4]]);
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
  const chunks = (requests: readonly ItemRequest[]) =>
    roundsOf(requests.map((request) => create(BatchRequestItemSchema, { request })));
  const completion = (key: number, entries: number, payloadBytes = 0): ItemRequest => ({
    case: "complete",
    value: {
      namespace: "charges",
      key: `order-${key}`,
      result: {
        payload: new Uint8Array(payloadBytes),
        metadata: Object.fromEntries(Array.from({ length: entries }, (_, i) => [`name-${i}`, "v"])),
      },
    },
  });
  const sizes = (requests: readonly ItemRequest[]) =>
    chunks(requests).map((round) => round.map((chunk) => chunk.length));

  test("a round of small results is one chunk", () => {
    expect(chunks([claim("a1"), completion(1, 64), lookup("a2")])).toEqual([[[0, 1, 2]]]);
  });

  test("a round of results with much metadata, or large payloads, is divided and keeps its order", () => {
    for (const requests of [
      Array.from({ length: 70 }, (_, i) => completion(i, 64)),
      Array.from({ length: 70 }, (_, i) => completion(i, 0, 128 * 1024)),
    ]) {
      expect(sizes(requests)).toEqual([[32, 32, 6]]);
      expect(chunks(requests).flat(2)).toEqual([...requests.keys()]);
    }
  });

  test.each([claim, lookup])("claims and lookups are divided by what they may return", (item) => {
    const requests = Array.from({ length: 600 }, (_, i) => item(`a${i}`));
    expect(sizes(requests)).toEqual([[256, 256, 88]]);
  });

  test("items on one record are never in two chunks of one round", () => {
    const others = Array.from({ length: 255 }, (_, i) => claim(`b${i}`));
    const requests = [claim("a1"), ...others, claim("a1"), claim("a1"), claim("a2")];
    const [first, second, ...more] = chunks(requests);
    expect(first).toEqual([[...Array(256).keys()], [258]]);
    expect(second).toEqual([[256, 257]]);
    expect(more).toEqual([]);
    expect(sizes(Array.from({ length: 600 }, () => claim("a1")))).toEqual([[256], [256], [88]]);
  });
});
