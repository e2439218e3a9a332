import { expect, it } from "vitest";
import { csvLine, parseCsv } from "./csv.ts";

it("cells are quoted as RFC 4180 says, and lines end with CRLF", () => {
  expect(csvLine(["a", "b,c", 'd"e', "f\ng", "h\r\ni", ""])).toBe('a,"b,c","d""e","f\ng","h\r\ni",\r\n');
});

it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])(
  "a cell that begins as %j is not a formula",
  (cell) => {
    expect(csvLine([cell]).replace(/^"/, "")).toMatch(/^'/);
  },
);

it.each(["a;=1", "a\t+1", "a\r-1", "a\n@b"])(
  "a part of %j that another separator makes a cell is not a formula",
  (cell) => {
    expect(csvLine([cell])).toMatch(/[;\t\r\n]'[=+\-@]/);
  },
);

it("different cells stay different, and are read back as they were", () => {
  const cells = [
    "=1",
    "'=1",
    "''=1",
    "'a",
    "a",
    "'",
    "",
    "\t=1",
    "'\t=1",
    "a;=1",
    "a;'=1",
    "a;'b",
    "\r\n-1",
    '"=',
    "a,'=1",
  ];
  const [row] = parseCsv(`${csvLine(["first", ...cells])}`);
  expect(row?.cells.slice(1)).toEqual(cells);
});

it("an apostrophe that a person wrote is a part of the cell", () => {
  expect(parseCsv("'tis,a\n")[0]?.cells).toEqual(["'tis", "a"]);
});

it("a formula that is not at the begin of its cell stays as it is", () => {
  expect(csvLine(["a=1", " =1"])).toBe("a=1, =1\r\n");
});
