import { describe, expect, it } from "vitest";
import { pageHref, readPages, withParameters } from "./pages.ts";

describe("lists in the address", () => {
  it("keep their filters on the next page, and lose the token on the first", () => {
    expect(pageHref("state=ambiguous&page=a", "b+/=")).toBe("?state=ambiguous&page=b%2B%2F%3D");
    expect(pageHref("state=ambiguous&page=a", "")).toBe("?state=ambiguous");
  });

  it("begin at the first page when a filter changes", () => {
    expect(withParameters("state=ambiguous&page=a", { owner: "w&1" })).toBe("state=ambiguous&owner=w%261");
  });

  it("have no empty filters", () => {
    expect(withParameters("state=ambiguous&owner=x", { state: "", owner: "y" })).toBe("owner=y");
  });
});

const MAX = 10_000;

/** Returns pages of `total` rows, each of `size`. */
function pagesOf(total: number, size: number) {
  return async (pageToken: string) => {
    const from = Number(pageToken);
    const to = Math.min(total, from + size);
    const rows = Array.from({ length: to - from }, (_, index) => from + index);
    return { rows, nextPageToken: to < total ? String(to) : "" };
  };
}

async function read(fetchPage: ReturnType<typeof pagesOf>) {
  const counts: number[] = [];
  const options = { max: MAX, progressed: (count: number) => counts.push(count) };
  const { rows, isCut } = await readPages(fetchPage, (page) => page.rows, options);
  return [rows.length, isCut, counts];
}

it("all pages are read, also an empty one before others", async () => {
  expect(await read(pagesOf(2_500, 1_000))).toEqual([2_500, false, [1_000, 2_000, 2_500]]);
  let calls = 0;
  const sparse = async () => ({ rows: [], nextPageToken: ++calls < 3 ? "more" : "" });
  expect(await read(sparse)).toEqual([0, false, [0, 0, 0]]);
});

it("reading ends at the limit, and shows that rows are skipped", async () => {
  expect((await read(pagesOf(MAX, 1_000))).slice(0, 2)).toEqual([MAX, false]);
  const [rows, isCut, counts] = await read(pagesOf(2 * MAX, 999));
  expect([rows, isCut, counts]).toMatchObject([MAX, true, { length: 11 }]);
  expect((await read(pagesOf(MAX + 1, MAX + 1))).slice(0, 2)).toEqual([MAX, true]);
});
