import { expect, test } from "vitest";
import type { Finding } from "./finding.ts";
import { markdownTable, number, plainTable, resultJson } from "./report.ts";

const FINDINGS: readonly Finding[] = [
  {
    figure: "P1",
    part: "64",
    what: "claims/s ÷ DIY, 64 callers",
    value: 2.4321,
    unit: "×",
    bar: { atLeast: 2.2 },
    raw: { "Onceward /s": 31_203.4, "DIY /s": 12_911 },
  },
  { figure: "P1", part: "limit", what: "÷ limit", value: 0.5, unit: "×", raw: {} },
  {
    figure: "P2",
    what: "pairs/s ÷ DIY",
    value: 2.49,
    unit: "×",
    bar: { atLeast: 2.5 },
    raw: { "DIY /s": 1 },
  },
  { figure: "P6", what: "p99 ÷ DIY", value: 1, unit: "×", bar: { atMost: 1 }, raw: {} },
];

test("a table has a line for each finding, and says whether its bar is met", () => {
  const [head, first, limit, missed, met] = plainTable(FINDINGS).split("\n");
  expect(head).toContain("figure");
  expect(first).toMatch(/^P1 .* 2\.43 × +≥ 2\.2 +met +Onceward \/s 31,203, DIY \/s 12,911$/);
  expect(limit).not.toMatch(/met|MISSED/);
  expect(missed).toContain("MISSED");
  expect(met).toMatch(/≤ 1 +met$/);
});

test("the Markdown table has as many cells in each line", () => {
  const lines = markdownTable(FINDINGS).split("\n");
  expect(new Set(lines.map((line) => line.split("|").length)).size).toBe(1);
  expect(lines).toHaveLength(FINDINGS.length + 2);
});

test("a figure of one value is a number in the result, and one of several an object", () => {
  expect(resultJson(FINDINGS, 3)).toEqual({
    P1: { 64: 2.4321, limit: 0.5 },
    P2: 2.49,
    P6: 1,
    violations: 3,
    raw: {
      P1: { 64: { "Onceward /s": 31_203.4, "DIY /s": 12_911 }, limit: {} },
      P2: { "DIY /s": 1 },
      P6: {},
    },
  });
});

test.each([
  [0.12345, "0.123"],
  [99.94, "99.9"],
  [12_345.6, "12,346"],
])("%d is shown as %s", (value, shown) => {
  expect(number(value)).toBe(shown);
});
