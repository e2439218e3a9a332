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

const LONG = "a label that a person wrote, and that has more words than the line has room for";

function linesOf(text: string): readonly string[] {
  return text.trimEnd().split("\n");
}

test("a text in the middle is cut, and one at the end continues in the next line", () => {
  const table = renderTable(["ID", "LABEL", "ADVICE"], [["7k2m9q4x1c8v5b3n", LONG, LONG]], { width: 60 }, [
    undefined,
    "text",
    "text",
  ]);
  for (const line of linesOf(table)) expect(line.length).toBeLessThanOrEqual(60);
  const [, first = ""] = linesOf(table);
  expect(first).toMatch(/^7k2m9q4x1c8v5b3n {2}a label.*… {2}a label/);
  const [, , ...rest] = linesOf(table);
  expect(rest.every((line) => line.startsWith(" ".repeat(18)))).toBe(true);
  const words = linesOf(table)
    .slice(1)
    .map((line) => line.slice(first.lastIndexOf("a label")));
  expect(words.join(" ")).toBe(LONG);
});

test("a key at the end is whole, and passes the edge", () => {
  const key = "POST:/charges:acme:".padEnd(90, "0");
  const rows = [["charges", "a long owner of the record", key]];
  const [, line] = linesOf(
    renderTable(["NAMESPACE", "OWNER", "KEY"], rows, { width: 42 }, [undefined, "text", "key"]),
  );
  expect(line).toBe(`charges    a long owner of the record  ${key}`);
});

test("columns that do not fit the line are shown one below the other, without a loss", () => {
  const names = ["a".repeat(30), "b".repeat(30)];
  expect(renderTable(["NAMESPACE", "TENANT"], [names, ["c", "d"]], { width: 40 })).toBe(
    `NAMESPACE  ${names[0]}\nTENANT     ${names[1]}\n\nNAMESPACE  c\nTENANT     d\n`,
  );
});

test("some columns are shown on demand only; those that are asked for are whole", () => {
  const headings = ["KEY", "LAST USED", "LABEL"];
  const rows = [["k", "now", LONG]];
  const fits = [undefined, "wide", "text"] as const;
  expect(linesOf(renderTable(headings, rows, { width: 40 }, fits))[0]).toBe("KEY  LABEL");
  expect(renderTable(headings, rows, { width: 40, wide: true }, fits)).toContain(`k    now        ${LONG}\n`);
  const columns = ["label", "last-used"];
  expect(linesOf(renderTable(headings, rows, { width: 40, columns }, fits))[1]).toBe(`${LONG}  now`);
  expect(() => renderTable(headings, rows, { width: 40, columns: ["owner"] }, fits)).toThrow(
    "There is no column owner. Columns are key, last-used, label.",
  );
});
