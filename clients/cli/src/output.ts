import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { Host } from "./host.ts";
import type { Listed } from "./pages.ts";
import { renderTable } from "./table.ts";

/** A column of a table: its heading, and a cell of it. */
export type Column<Item> = readonly [heading: string, cell: (item: Item) => string];

/** Prints results: text for people, or with `--json` the message as Protobuf's JSON has it, every field named. */
export class Output {
  readonly #host: Host;
  readonly isJson: boolean;

  constructor(host: Host, isJson: boolean) {
    this.#host = host;
    this.isJson = isJson;
  }

  /** One message: an object, or the text. */
  message<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, text: () => string): void {
    this.#host.write(this.isJson ? stringify(asJson(schema, message)) : text());
  }

  /** A list: an array, or a table. That it was cut short is no result, and is said beside it. */
  list<Desc extends DescMessage>(
    schema: Desc,
    { items, hasMore }: Listed<MessageShape<Desc>>,
    columns: readonly Column<MessageShape<Desc>>[],
  ): void {
    if (this.isJson) {
      this.#host.write(stringify(items.map((item) => asJson(schema, item))));
    } else {
      const rows = items.map((item) => columns.map(([, cell]) => cell(item)));
      this.#host.write(
        renderTable(
          columns.map(([heading]) => heading),
          rows,
        ),
      );
    }
    if (hasMore) this.#host.warn(`There are more than ${items.length}; --limit sets how many are shown.\n`);
  }

  /** Beside the result: what a person wants to know and a program does not. */
  remark(text: string): void {
    if (!this.isJson) this.#host.warn(text);
  }
}

function asJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): unknown {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

function stringify(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
