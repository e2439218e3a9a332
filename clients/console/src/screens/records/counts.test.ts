import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CountRecordsResponseSchema } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { expect, it } from "vitest";
import { countNamespaces, type NamespaceCounts } from "./counts.ts";

it("a namespace is counted page by page, and the counts are added", async () => {
  const since = { oldestAmbiguousSince: timestampFromMs(2_000) };
  const earlier = { oldestAmbiguousSince: timestampFromMs(1_000) };
  const pages = {
    "a ": { completed: 5n, ambiguous: 1n, ...since, nextPageToken: "2" },
    "a 2": { completed: 7n, lapsed: 1n, ambiguous: 2n, ...earlier, nextPageToken: "3" },
    "a 3": { released: 1n },
    "b ": {},
  };
  const asked: string[] = [];
  const fetchPage = async (namespace: string, token: string) => {
    const name = `${namespace} ${token}`;
    asked.push(name);
    return create(CountRecordsResponseSchema, pages[name as keyof typeof pages]);
  };
  const seen: NamespaceCounts[] = [];
  for await (const counted of countNamespaces(["a", "b"], fetchPage)) seen.push(counted);
  expect(asked).toEqual(Object.keys(pages));
  expect(seen.map(({ isWhole }) => isWhole)).toEqual([false, false, true, true]);
  expect(seen[2]).toEqual({
    namespace: "a",
    isWhole: true,
    counts: { inProgress: 0n, lapsed: 1n, completed: 12n, released: 1n, ambiguous: 3n, ...earlier },
  });
});
