import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BOUNDS, changedTenfold } from "../tools/promises/bounds.ts";

const root = new URL("../../", import.meta.url);

test.each(BOUNDS)("$file defines the bound $constant, and $test exists", (bound) => {
  const source = readFileSync(new URL(bound.file, root), "utf8");
  expect(changedTenfold(source, bound.constant)).toMatch(/10 \* \([^()]+\)/);
  expect(existsSync(new URL(bound.test, root))).toBe(true);
});

test("a constant or the first number of an object's member is changed tenfold", () => {
  expect(changedTenfold("const MAX = 2 * KIB;", "MAX")).toBe("const MAX = 10 * (2 * KIB);");
  const source = "const A = { b: 1 };\nexport const B: T = { a: { c: 5 }, b: 4, c: 5 };";
  expect(changedTenfold(source, "B.b")).toBe(source.replace("4", "10 * (4)"));
  expect(() => changedTenfold(source, "C")).toThrow("no C is defined");
});
