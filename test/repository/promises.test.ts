import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BOUNDS, changedTenfold } from "../lab/promises/bounds.ts";

const root = new URL("../../", import.meta.url);

test.each(BOUNDS)("$file defines the bound $constant, and $test exists", (bound) => {
  const source = readFileSync(new URL(bound.file, root), "utf8");
  expect(changedTenfold(source, bound)).not.toBe(source);
  expect(existsSync(new URL(bound.test, root))).toBe(true);
});

test("a constant, the first number of an object's member or a fact is changed tenfold", () => {
  const bound = (constant: string, file = "a.ts") => ({ file, constant, test: "" });
  expect(changedTenfold("const MAX = 2 * KIB;", bound("MAX"))).toBe("const MAX = 10 * (2 * KIB);");
  const source = "const A = { b: 1 };\nexport const B: T = { a: { c: 5 }, b: 4, c: 5 };";
  expect(changedTenfold(source, bound("B.b"))).toBe(source.replace("4", "10 * (4)"));
  expect(() => changedTenfold(source, bound("C"))).toThrow("no C is defined");
  const proto =
    'message M {\n  int32 a = 1 [(field) = {max: 2}];\n  D b = 2 [(field) = {\n    default: "3h"\n  }];\n}';
  expect(changedTenfold(proto, bound("M.a.max", "a.proto"))).toBe(proto.replace("2}", "20}"));
  expect(changedTenfold(proto, bound("M.b.default", "a.proto"))).toBe(proto.replace("3h", "30h"));
});
