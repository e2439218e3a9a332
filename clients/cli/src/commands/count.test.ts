import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CountRecordsResponseSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { countRecords } from "./count.ts";

test("counts of all pages are added, and the oldest ambiguous record is of any page", async () => {
  const [older, newer] = [timestampFromMs(1000), timestampFromMs(2000)];
  const pages = [
    create(CountRecordsResponseSchema, { completed: 2n, oldestAmbiguousSince: newer, nextPageToken: "a" }),
    create(CountRecordsResponseSchema, { completed: 3n, oldestAmbiguousSince: older, nextPageToken: "b" }),
    create(CountRecordsResponseSchema, { lapsed: 1n }),
  ];
  const asked: (string | undefined)[] = [];
  const client = {
    countRecords: async ({ pageToken }: { pageToken?: string }) => {
      asked.push(pageToken);
      return pages[asked.length - 1] ?? create(CountRecordsResponseSchema);
    },
  };
  const counts = await countRecords({ client, call: {} }, "charges");
  expect(asked).toEqual(["", "a", "b"]);
  expect(counts).toMatchObject({ completed: 5n, lapsed: 1n, oldestAmbiguousSince: older });
});
