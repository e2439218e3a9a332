import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { BatchRequestItemSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { turnsOf } from "./batch-turns.ts";

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
const claim = create(BatchRequestItemSchema, { request: { case: "claim", value: {} } });

test("a round without much metadata is one turn", () => {
  expect(turnsOf([claim, completion(64), claim], [0, 1, 2])).toEqual([[0, 1, 2]]);
});

test("a round with much metadata is cut where a turn has enough, and keeps its order", () => {
  const items = Array.from({ length: 70 }, () => completion(64));
  const turns = turnsOf(items, [...items.keys()]);
  expect(turns.map((turn) => turn.length)).toEqual([32, 32, 6]);
  expect(turns.flat()).toEqual([...items.keys()]);
});
