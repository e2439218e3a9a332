import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BOUNDS, changedTenfold } from "../lab/promises/bounds.ts";

const root = new URL("../../", import.meta.url);

test.each(BOUNDS)("$file defines the bound $constant, and $test exists", (bound) => {
  const source = readFileSync(new URL(bound.file, root), "utf8");
  expect(changedTenfold(source, bound)).not.toBe(source);
  expect(existsSync(new URL(bound.test, root))).toBe(true);
});
