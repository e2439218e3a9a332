/** Returns a line of RFC 4180: cells with a comma, a quote or a line break are quoted, and it ends with CRLF. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => quoted(defused(cell))).join(",")}\r\n`;
}

function quoted(cell: string): string {
  return /[",;\t\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/**
 * Returns a cell that no spreadsheet takes for a formula: an apostrophe is put before the characters that begin one, also where another
 * separator than the comma would begin a cell; and before an apostrophe there, so that `undefused` returns every cell as it was.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
function defused(cell: string): string {
  return cell.replace(/^(?=[=+\-@\t\r\n'])|(?<=[;\t\r\n])(?=[=+\-@'])/g, "'");
}

/** Undoes `defused`. In a cell that a person wrote, an apostrophe before another character stays. */
function undefused(cell: string): string {
  return cell.replace(/^'(?=[=+\-@\t\r\n'])|(?<=[;\t\r\n])'(?=[=+\-@'])/g, "");
}

/** A row of a file, and the line on which it begins, from 1. */
export interface CsvRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Reads comma-separated values as RFC 4180 writes them, and as spreadsheets do: with semicolons or tabs, with a byte-order mark, and with
 * either end of line. Undoes the apostrophes of `csvLine`. Rows without any text are skipped.
 */
export function parseCsv(text: string): readonly CsvRow[] {
  const body = text.replace(/^\uFEFF/, "");
  const separator = /[;\t]/.exec(body.split(/[\r\n,]/, 1)[0] ?? "")?.[0] ?? ",";
  const cell = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"\\r\\n${separator}][^\\r\\n${separator}]*)?)(${separator}|\\r\\n?|\\n|$)`,
    "y",
  );
  const rows: CsvRow[] = [];
  let cells: string[] = [];
  let start = 1;
  let line = 1;
  while (cell.lastIndex < body.length) {
    const at = cell.lastIndex;
    const [whole = "", inQuotes, plain = "", end = ""] = cell.exec(body) ?? brokenQuotes(body, at, cell);
    cells.push(undefused(inQuotes?.replaceAll('""', '"') ?? plain));
    line += whole.match(/\r\n?|\n/g)?.length ?? 0;
    if (end === separator && cell.lastIndex < body.length) continue;
    if (cells.some((each) => each.trim() !== "")) rows.push({ line: start, cells });
    cells = [];
    start = line;
  }
  return rows;
}

/** A quote that is never closed, or text behind a closed one: the rest of the line is the cell, as it is. */
function brokenQuotes(body: string, at: number, cell: RegExp): readonly string[] {
  const rest = /.*(?:\r\n?|\n|$)/y;
  rest.lastIndex = at;
  const whole = rest.exec(body)?.[0] ?? "";
  cell.lastIndex = at + whole.length;
  const text = whole.trimEnd();
  return [whole, text, "", ""];
}
