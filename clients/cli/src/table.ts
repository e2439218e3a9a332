import { UsageError } from "./failure.ts";
import { visible } from "./terminal.ts";

/**
 * How a column fits a narrow line. `wide`: it is shown on demand only. `text`: a person's words, cut, or wrapped in the last column.
 * `key`: the last column, which may pass the edge, because a person copies it. Unset: whole.
 */
export type Fit = "wide" | "text" | "key";

/** How tables are laid out. */
export interface Layout {
  /** The characters of a line. */
  readonly width: number;
  /** Show every column, in lines of any length. */
  readonly wide?: true | undefined;
  /** Show these columns only, in lines of any length. */
  readonly columns?: readonly string[] | undefined;
}

interface Column {
  readonly heading: string;
  readonly fit: Fit | undefined;
  readonly cells: readonly string[];
}

/** The characters of a line where there is no terminal, or its width is unknown. */
export const DEFAULT_WIDTH = 80;
const GAP = "  ";
/** The fewest characters of a text that is cut: the beginning of a name. */
const MIN_CUT = 7;
/** The fewest characters of a line of wrapped text: those of a time. */
const MIN_WRAPPED = 20;

/**
 * Returns a table with aligned columns: one line for the headings and one per row, each with a line break; a last text that is too long
 * continues in further lines. If the columns do not fit the line, returns a block of lines for each row.
 *
 * @param fits of the columns, by their index.
 * @throws UsageError if the layout names a column that there is not.
 */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  layout: Layout = { width: DEFAULT_WIDTH },
  fits: readonly (Fit | undefined)[] = [],
): string {
  const all = headings.map((heading, index) => ({
    heading,
    fit: fits[index],
    cells: rows.map((row) => visible(row[index] ?? "")),
  }));
  const isWhole = layout.wide === true || layout.columns !== undefined;
  const columns = selected(all, layout);
  const widths = isWhole ? columns.map(naturalWidth) : fitWidths(columns, layout.width);
  return widths === undefined ? blocks(columns, layout.width) : lines(columns, widths);
}

function selected(all: readonly Column[], { wide, columns: named }: Layout): readonly Column[] {
  if (named === undefined) return all.filter(({ fit }) => wide || fit !== "wide");
  return named.map((name) => {
    const found = all.find(({ heading }) => plain(heading) === plain(name));
    if (found !== undefined) return found;
    throw new UsageError(
      `There is no column ${name}. Columns are ${all.map(({ heading }) => plain(heading)).join(", ")}.`,
    );
  });
}

function plain(heading: string): string {
  return heading.trim().toLowerCase().replaceAll(/[ _]/g, "-");
}

function naturalWidth({ heading, cells }: Column): number {
  return Math.max(heading.length, ...cells.map(({ length }) => length));
}

/** Returns the widths with which the columns fit a line; undefined: they do not. */
function fitWidths(columns: readonly Column[], width: number): readonly number[] | undefined {
  const last = columns.length - 1;
  const widths = columns.map((column, index) =>
    index === last && column.fit === "key" ? column.heading.length : naturalWidth(column),
  );
  const spare = columns.map(({ heading, fit }, index) => {
    const least = Math.max(heading.length, index === last ? MIN_WRAPPED : MIN_CUT);
    return fit === "text" ? Math.max(0, (widths[index] ?? 0) - least) : 0;
  });
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * last) - width;
  while (excess > 0) {
    // The longest text gives first, one character at a time: texts of one length are cut alike.
    const most = spare.reduce((found, each, index) => (each > (spare[found] ?? 0) ? index : found), 0);
    if ((spare[most] ?? 0) === 0) return undefined;
    spare[most] = (spare[most] ?? 0) - 1;
    widths[most] = (widths[most] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function lines(columns: readonly Column[], widths: readonly number[]): string {
  const last = columns.length - 1;
  const line = (cells: readonly string[]) =>
    `${cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join(GAP)
      .trimEnd()}\n`;
  const body = (columns[0]?.cells ?? []).map((_, row) => {
    const cells = columns.map(({ cells }) => cells[row] ?? "");
    const [first = "", ...more] =
      columns[last]?.fit === "text" ? wrap(cells[last] ?? "", widths[last] ?? 0) : [cells[last] ?? ""];
    const shown = cells.slice(0, last).map((cell, index) => cut(cell, widths[index] ?? 0));
    return [[...shown, first], ...more.map((text) => [...shown.map(() => ""), text])].map(line).join("");
  });
  return line(columns.map(({ heading }) => heading)) + body.join("");
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** Returns a text in lines of at most `width`; a longer word has a line of its own. */
function wrap(text: string, width: number): readonly string[] {
  const found: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      found.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...found, line];
}

/** Returns each row as names and values, with an empty line between rows. */
function blocks(columns: readonly Column[], width: number): string {
  const rows = (columns[0]?.cells ?? []).map((_, row) =>
    renderFacts(
      columns.map(({ heading, cells }) => [heading, cells[row] ?? ""]),
      width,
    ),
  );
  return rows.join("\n");
}

/** Returns names and values, aligned, one pair per line. @param lineWidth longer values continue in further lines. */
export function renderFacts(
  facts: readonly (readonly [string, string])[],
  lineWidth = Number.POSITIVE_INFINITY,
): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  const lines = facts.flatMap(([name, value]) =>
    wrap(visible(value), lineWidth - width - GAP.length).map((text, index) =>
      `${(index === 0 ? name : "").padEnd(width)}${GAP}${text}`.trimEnd(),
    ),
  );
  return lines.map((line) => `${line}\n`).join("");
}
