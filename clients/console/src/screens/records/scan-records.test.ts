import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RecordSchema } from "@onceward/gen/onceward/v1/record_pb.ts";
import { expect, it } from "vitest";
import { newestFirst, scanRecords } from "./scan-records.ts";

const record = (key: string) =>
  create(RecordSchema, { key, claimedAt: timestampFromMs(Number(key) * 1_000) });

it("a list is read until its page is full or a second has passed, then continues there", async () => {
  let ms = 0;
  const asked: string[] = [];
  const scan = (token: string, stepMs: number) =>
    scanRecords(
      async (pageToken, pageSize) => {
        ms += stepMs;
        asked.push(`${pageToken} ${pageSize}`);
        return { records: [record(pageToken || "0")], nextPageToken: String(Number(pageToken || "0") + 1) };
      },
      { token, size: 3, nowMs: () => ms },
    );
  const full = await scan("", 100);
  expect([full.records.map(({ key }) => key), full.nextPageToken]).toEqual([["0", "1", "2"], "3"]);
  expect(asked).toEqual([" 3", "1 2", "2 1"]);
  const late = await scan("3", 900);
  expect([late.records.length, late.nextPageToken]).toEqual([2, "5"]);
  expect(newestFirst(late.records).map(({ key }) => key)).toEqual(["4", "3"]);
});
