import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { changedTenfold, normalised } from "../tools/promises/promise.ts";
import { PROMISES } from "../tools/promises/promises.ts";

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");

test.each(PROMISES)("$document says “$says”, $file has $constant, and a test holds it", (promise) => {
  expect(normalised(read(promise.document))).toContain(promise.says);
  expect(existsSync(new URL(promise.test, root))).toBe(true);
  expect(changedTenfold(read(promise.file), promise.constant)).not.toBe(read(promise.file));
});

test("a constant is changed tenfold, of several numbers the first", () => {
  expect(changedTenfold("const MAX = 2 * KIB;", "MAX = 2 * KIB")).toBe("const MAX = 10 * (2 * KIB);");
  expect(changedTenfold("a: { b: 4, c: 5 },", "a: { b: 4, c: 5 }")).toBe("a: { b: 10 * (4), c: 5 },");
  expect(() => changedTenfold("A = 1; A = 1;", "A = 1")).toThrow("2 times");
});
