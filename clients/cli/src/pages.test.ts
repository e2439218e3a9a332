import { expect, test } from "vitest";
import { collectPages, type PageRequest } from "./pages.ts";

/** A list of numbers in pages of at most three, the second of which is empty. */
function readPage({ pageSize, pageToken }: PageRequest) {
  const pages = [[1, 2, 3], [], [4, 5, 6], [7]];
  const index = Number(pageToken || 0);
  const items = (pages[index] ?? []).slice(0, pageSize);
  return Promise.resolve({ items, nextPageToken: index < pages.length - 1 ? `${index + 1}` : "" });
}

test("all pages are read, also after an empty one", async () => {
  expect(await collectPages(100, "items", readPage)).toEqual({
    items: [1, 2, 3, 4, 5, 6, 7],
    hasMore: false,
  });
});

test("no more than the limit is requested, and hasMore says that there is more", async () => {
  expect(await collectPages(5, "items", readPage)).toEqual({ items: [1, 2, 3, 4, 5], hasMore: true });
});

test("a page is never larger than the service's largest", async () => {
  const sizes: number[] = [];
  await collectPages(1500, "items", ({ pageSize }) => {
    sizes.push(pageSize);
    return Promise.resolve({ items: new Array(pageSize).fill(0), nextPageToken: "next" });
  });
  expect(sizes).toEqual([1000, 500]);
});
