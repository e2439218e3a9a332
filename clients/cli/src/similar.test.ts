import { expect, test } from "vitest";
import { didYouMean } from "./similar.ts";

test("the most similar names are asked for; none, if none is similar", () => {
  expect(didYouMean("paymnets", ["charges", "payments"])).toBe(" Did you mean payments?");
  expect(didYouMean("zzz", ["charges", "payments"])).toBe("");
  expect(didYouMean("x", [])).toBe("");
});
