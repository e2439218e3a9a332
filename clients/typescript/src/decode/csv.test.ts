import { expect, it } from "vitest";
import { csvLine } from "./csv.ts";

it("cells are quoted as RFC 4180 says, and lines end with CRLF", () => {
  expect(csvLine(["a", "b,c", 'd"e', "f\ng", "h\r\ni", ""])).toBe('a,"b,c","d""e","f\ng","h\r\ni",\r\n');
});

it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])(
  "a cell that begins as %j is not a formula",
  (cell) => {
    expect(csvLine([cell]).replace(/^"/, "")).toMatch(/^'/);
  },
);

it("a formula that is not at the begin of its cell stays as it is", () => {
  expect(csvLine(["a=1", " =1"])).toBe("a=1, =1\r\n");
});
