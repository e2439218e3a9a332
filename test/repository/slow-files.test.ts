import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { SLOW_FILES } from "../helpers/slow-first.ts";

test("the files that run first exist", () => {
  const missing = SLOW_FILES.filter((file) => !existsSync(new URL(`../../${file}`, import.meta.url)));
  expect(missing).toEqual([]);
});
