import { expect, it } from "vitest";
import { joinTokens, splitTokens } from "./two-tokens.ts";

it("the tokens of two lists are one, and two again", () => {
  expect(joinTokens("", "")).toBe("");
  expect(splitTokens("")).toEqual(["", ""]);
  expect(splitTokens(joinTokens("a_-", "b"))).toEqual(["a_-", "b"]);
});
