import { create } from "@bufbuild/protobuf";
import { RecordSchema } from "@onceward/gen/onceward/v1/record_pb.ts";
import { expect, it } from "vitest";
import { groupsOf } from "./queue.ts";

it("records of an owner are a group, and that of the oldest record comes first", () => {
  const left = [
    ["a", "one"],
    ["b", "two"],
    ["c", "one"],
    ["d", ""],
  ] as const;
  const records = left.map(([key, owner]) => create(RecordSchema, { key, owner }));
  const keys = groupsOf(records).map(({ owner, rows }) => [owner, rows.map(({ key }) => key).join("")]);
  expect(keys).toEqual([
    ["one", "ac"],
    ["two", "b"],
    ["", "d"],
  ]);
});
