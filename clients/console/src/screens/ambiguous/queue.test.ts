import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RecordSchema } from "@onceward/gen/onceward/v1/record_pb.ts";
import { expect, it } from "vitest";
import { MINUTE_MS } from "../../format/duration.ts";
import { groupsOf } from "./queue.ts";

it("records of an owner within an hour are a group, and the oldest group comes first", () => {
  const left = [
    ["a", "one", 0],
    ["b", "two", 1],
    ["c", "one", 59],
    ["d", "one", 60],
    ["e", "two", 60],
    ["f", "two", 61],
  ] as const;
  const records = left.map(([key, owner, minute]) =>
    create(RecordSchema, { key, owner, leaseExpiresAt: timestampFromMs(minute * MINUTE_MS) }),
  );
  const keys = groupsOf(records).map(({ owner, rows }) => [owner, rows.map(({ key }) => key).join("")]);
  expect(keys).toEqual([
    ["one", "ac"],
    ["two", "be"],
    ["one", "d"],
    ["two", "f"],
  ]);
});
