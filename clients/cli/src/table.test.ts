import { expect, test } from "vitest";
import { renderFacts, renderTable } from "./table.ts";

test("columns are aligned, and lines end where their text does", () => {
  expect(
    renderTable(
      ["KEY", "STATE"],
      [
        ["order-1", "completed"],
        ["o", ""],
      ],
    ),
  ).toBe("KEY      STATE\norder-1  completed\no\n");
});

test("a table without rows has only its headings", () => {
  expect(renderTable(["KEY", "STATE"], [])).toBe("KEY  STATE\n");
});

test("facts are aligned", () => {
  expect(
    renderFacts([
      ["key", "order-1"],
      ["attempt", "2"],
    ]),
  ).toBe("key      order-1\nattempt  2\n");
});

test("control and bidirectional characters in a cell break no line and control no terminal", () => {
  const owner = "\u001b[2Jworker\r\n\u009b1m\u202e";
  expect(renderTable(["OWNER"], [[owner]])).toBe("OWNER\n�[2Jworker���1m�\n");
  expect(renderFacts([["owner", owner]])).toBe("owner  �[2Jworker���1m�\n");
});
