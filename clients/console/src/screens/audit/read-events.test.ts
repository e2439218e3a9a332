import { create } from "@bufbuild/protobuf";
import { AuditEventSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { expect, it } from "vitest";
import { MAX_EXPORTED, readEvents } from "./read-events.ts";

/** Returns pages of `total` events, each of `size`. */
function pagesOf(total: number, size: number) {
  return async ({ pageToken }: { readonly pageToken: string }) => {
    const from = Number(pageToken);
    const to = Math.min(total, from + size);
    const events = Array.from({ length: to - from }, (_, index) =>
      create(AuditEventSchema, { id: BigInt(from + index) }),
    );
    return { events, nextPageToken: to < total ? String(to) : "" };
  };
}

it("all pages are read, also an empty one before others", async () => {
  const counts: number[] = [];
  const { events, isCut } = await readEvents(pagesOf(2_500, 1_000), (count) => counts.push(count));
  expect([events.length, isCut, counts]).toEqual([2_500, false, [1_000, 2_000, 2_500]]);
  let calls = 0;
  const sparse = await readEvents(
    async () => ({ events: [], nextPageToken: ++calls < 3 ? "more" : "" }),
    () => {},
  );
  expect([sparse.events.length, sparse.isCut, calls]).toEqual([0, false, 3]);
});

it("reading ends at the limit, and shows that older events are skipped", async () => {
  const whole = await readEvents(pagesOf(MAX_EXPORTED, 1_000), () => {});
  expect([whole.events.length, whole.isCut]).toEqual([MAX_EXPORTED, false]);
  const counts: number[] = [];
  const cut = await readEvents(pagesOf(2 * MAX_EXPORTED, 999), (count) => counts.push(count));
  expect([cut.events.length, cut.isCut, counts.length]).toEqual([MAX_EXPORTED, true, 11]);
  const byOne = await readEvents(pagesOf(MAX_EXPORTED + 1, MAX_EXPORTED + 1), () => {});
  expect([byOne.events.length, byOne.isCut]).toEqual([MAX_EXPORTED, true]);
});
