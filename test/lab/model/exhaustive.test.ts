import { expect, test } from "vitest";
import { searchAll } from "./exhaustive/search.ts";

test("no state within some steps of two callers and two keys contradicts the protocol", () => {
  const { states, contradiction } = searchAll({ keys: 2, callers: 2, crashes: 1, depth: 5 });
  expect(contradiction).toBeUndefined();
  expect(states).toBeGreaterThan(1000);
});
