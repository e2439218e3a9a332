import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { Host } from "./host.ts";
import type { Listed } from "./pages.ts";
import { DEFAULT_WIDTH, type Fit, type Layout, renderTable } from "./table.ts";
import { printableJson } from "./terminal.ts";
import { formatAlike, formatDuration, type Moment, Span } from "./times.ts";

/** A column of a table: its heading, a function that returns an item's cell, and how it fits a narrow line. */
export type Column<Item> = readonly [
  heading: string,
  cell: (item: Item) => string | Moment | Span,
  fit?: Fit | undefined,
];

/** Returns that by which items of several cells are ordered: numbers the greatest first, texts from A. */
export type OrderBy<Item> = (item: Item) => number | string;

/** The options of commands with tables. */
export type TableOptions = Pick<Layout, "wide" | "columns">;

/** Returns how a command's tables are laid out. */
export function layoutOf({ width = DEFAULT_WIDTH }: Pick<Host, "width">, options: TableOptions = {}): Layout {
  return { width, wide: options.wide, columns: options.columns };
}

/** Prints results: text for people, or with `--json` the message as Protobuf JSON with every field. */
export class Output {
  readonly #host: Host;
  readonly isJson: boolean;
  /** How the command's tables are laid out. */
  readonly layout: Layout;
  /** Prints the list that has no items; undefined: there is none. */
  #emptyList: (() => void) | undefined;

  constructor(host: Host, isJson: boolean, options: TableOptions = {}) {
    this.#host = host;
    this.isJson = isJson;
    this.layout = layoutOf(host, options);
  }

  /** Prints one message: a JSON object, or the text. */
  message<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, text: () => string): void {
    this.#host.write(this.isJson ? stringify(asJson(schema, message)) : text());
  }

  /** Whether the command's list has no items: its filters may name what does not exist. */
  get isEmptyList(): boolean {
    return this.#emptyList !== undefined;
  }

  /** Prints what waits: a list without items, which is not printed before an error. */
  finish(): void {
    this.#emptyList?.();
  }

  /**
   * Prints a list: a JSON array, or a table; without items, at the end of the command. If it was cut short, a warning on standard
   * error says so.
   *
   * @param orderBy of the items of several cells; unset: cell by cell.
   */
  list<Desc extends DescMessage>(
    schema: Desc,
    listed: Listed<MessageShape<Desc>>,
    columns: readonly Column<MessageShape<Desc>>[],
    orderBy?: OrderBy<MessageShape<Desc>>,
  ): void {
    this.values(listed, columns, (item) => asJson(schema, item), orderBy);
  }

  /** Prints a list of values that are not messages of the contract, as `list` does. */
  values<Item>(
    listed: Listed<Item>,
    columns: readonly Column<Item>[],
    toValue: (item: Item) => unknown,
    _orderBy?: OrderBy<Item>,
  ): void {
    const print = () => this.#print(listed, columns, toValue);
    if (listed.items.length === 0) this.#emptyList = print;
    else print();
  }

  #print<Item>(
    { items, hasMore }: Listed<Item>,
    columns: readonly Column<Item>[],
    toValue: (item: Item) => unknown,
  ): void {
    if (this.isJson) {
      this.#host.write(stringify(items.map(toValue)));
    } else {
      const [headings = "", ...lines] = this.table(items, columns).split(/(?<=\n)/);
      this.#host.writeHeading(headings);
      this.#host.write(lines.join(""));
    }
    if (hasMore) this.#host.warn(`There are more than ${items.length}; --limit sets how many are shown.\n`);
  }

  /** Returns items as a table. */
  table<Item>(items: readonly Item[], columns: readonly Column<Item>[]): string {
    const nowMs = this.#host.isTerminal ? Date.now() : undefined;
    const texts = columns.map(([, cell]) => columnTexts(items.map(cell), nowMs));
    const rows = items.map((_, row) => texts.map((column) => column[row] ?? ""));
    const headings = columns.map(([heading]) => heading);
    const fits = columns.map(([, , fit]) => fit);
    return renderTable(headings, rows, this.layout, fits);
  }

  /** Prints one line of a report that continues: a JSON object on one line, or the text. */
  line(value: unknown, text: () => string): void {
    this.#host.write(this.isJson ? `${printableJson(value)}\n` : text());
  }

  /** Prints a value that is not a message of the contract: as JSON, or the text. */
  value(value: unknown, text: () => string): void {
    this.#host.write(this.isJson ? stringify(value) : text());
  }

  /** Prints a text for people; nothing with `--json`. */
  text(text: string): void {
    if (!this.isJson) this.#host.write(text);
  }

  /** Prints a remark for people on standard error; nothing with `--json`. */
  remark(text: string): void {
    if (!this.isJson) this.#host.warn(text);
  }
}

function columnTexts(
  cells: readonly (string | Moment | Span)[],
  nowMs: number | undefined,
): readonly string[] {
  const spans = formatAlike(cells.map((cell) => (cell instanceof Span ? cell.duration : undefined)));
  return cells.map((cell, row) => (cell instanceof Span ? (spans[row] ?? "") : cellText(cell, nowMs)));
}

/** Returns a cell's text; with `nowMs`, times are relative to it. */
export function cellText(cell: string | Moment | Span, nowMs?: number): string {
  if (cell instanceof Span) return formatDuration(cell.duration);
  return typeof cell === "string" ? cell : cell.format(nowMs);
}

/** Returns a message as Protobuf JSON with every field. */
export function asJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): unknown {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

function stringify(value: unknown): string {
  return `${printableJson(value, 2)}\n`;
}

/** Returns an enum value's name as options accept it, such as "in_progress"; its number if it is a newer service's. */
export function enumName(names: Readonly<Record<string, number>>, value: number): string {
  const [name] = Object.entries(names).find(([, number]) => number === value) ?? [];
  return name?.toLowerCase() ?? `${value}`;
}
