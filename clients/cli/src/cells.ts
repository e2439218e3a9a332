import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Credentials, GlobalOptions } from "./credentials.ts";
import {
  describeFailure,
  EXIT,
  type ExitCode,
  exitCodeOf,
  failureJson,
  Outcome,
  ServiceFailure,
  UsageError,
} from "./failure.ts";
import type { Host } from "./host.ts";
import { asJson, type Column, type OrderBy, Output } from "./output.ts";
import type { Listed } from "./pages.ts";
import { type KeyRole, readProfiles } from "./profiles.ts";

/** A cell's name, its address and its key. */
type Cell = readonly [name: string, credentials: Credentials];

/**
 * Returns the cells of `--all-cells`: the profiles with a key that was stored for the role; of those with one address, the first.
 *
 * @throws UsageError if there are none, or if other options name a service.
 */
export async function readCells(host: Host, options: GlobalOptions, role: KeyRole): Promise<readonly Cell[]> {
  if (options.profile !== undefined || options.address !== undefined || options.apiKeyStdin)
    throw new UsageError("Give --all-cells, or the options that name one service.");
  const { byName } = await readProfiles(host);
  const cells = new Map<string, Cell>();
  for (const [name, { address, apiKeys }] of Object.entries(byName)) {
    const apiKey = apiKeys?.[role];
    if (apiKey !== undefined && !cells.has(address)) cells.set(address, [name, { address, apiKey }]);
  }
  if (cells.size > 0) return [...cells.values()];
  throw new UsageError(
    `No profile is a cell: store each with onceward profile set NAME --role ${role} --address URL --api-key-stdin.`,
  );
}

/** What a command prints of one cell, kept until all have answered. */
export class CellOutput extends Output {
  readonly cell: string;
  /** Why the cell has no answer; undefined: it has one. */
  failure: unknown;
  exitCode: ExitCode = EXIT.ok;
  items: readonly unknown[] = [];
  hasMore = false;
  columns: readonly Column<unknown>[] | undefined;
  orderBy: OrderBy<unknown> | undefined;
  report: string | undefined;
  toValue: (item: unknown) => unknown = (item) => item;

  constructor(cell: string, ...given: ConstructorParameters<typeof Output>) {
    super(...given);
    this.cell = cell;
  }

  override message<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, text: () => string) {
    this.items = [asJson(schema, message)];
    this.report = text();
  }

  override values<Item>(
    { items, hasMore }: Listed<Item>,
    columns: readonly Column<Item>[],
    toValue: (item: Item) => unknown,
    orderBy?: OrderBy<Item>,
  ): void {
    Object.assign(this, { items, hasMore, columns, toValue, orderBy });
  }

  override remark(text: string): void {
    super.remark(`${this.cell}: ${text}`);
  }

  /** What is said beside a list is of one service. */
  override text(): void {}

  /** Notes why the cell's command ended early. An Outcome without a message has explained itself. */
  fail(error: unknown): void {
    this.exitCode = exitCodeOf(error);
    if (!(error instanceof Outcome && error.message === "")) this.failure = error;
  }
}

/** An item of a cell; undefined for a cell without an answer. */
interface Row {
  readonly of: CellOutput;
  readonly item?: unknown;
}

/**
 * Prints what all cells answered: one list, in the command's order and within its limit, or one report after another. A cell without
 * an answer has a row, or a report, too.
 *
 * @throws Outcome with the exit code of a cell without an answer, else the greatest one.
 */
export function printCells(output: Output, cells: readonly CellOutput[], limit = cells.length): void {
  const silent = cells.filter(({ failure }) => failure !== undefined);
  const { columns = [["ERROR", () => ""] as const], orderBy } = cells.find((each) => each.columns) ?? {};
  const found = cells.flatMap((of) => of.items.map((item): Row => ({ of, item })));
  if (orderBy !== undefined) found.sort((a, b) => inOrder(orderBy(a.item), orderBy(b.item)));
  const rows = [...found.slice(0, limit), ...silent.map((of): Row => ({ of }))];
  const toValue = ({ of, item }: Row) => ({
    cell: of.cell,
    ...(item === undefined
      ? { error: JSON.parse(failureJson(of.failure) ?? "{}") }
      : (of.toValue(item) as object)),
  });
  if (!output.isJson && cells.some(({ report }) => report !== undefined)) {
    const textOf = (of: CellOutput) => `${of.cell}\n${of.report ?? `error    ${reasonOf(of)}\n`}`;
    output.text(cells.map(textOf).join("\n"));
  } else {
    const ofCell = columns.map(([heading, cell, fit], index): Column<Row> => {
      const missing = (of: CellOutput) => (index === 0 ? reasonOf(of) : "-");
      const textOf = ({ of, item }: Row) => (item === undefined ? missing(of) : cell(item));
      return [heading, textOf, fit ?? (index === 0 ? "text" : undefined)];
    });
    const hasMore = found.length > limit || cells.some((each) => each.hasMore);
    output.values({ items: rows, hasMore }, [["CELL", ({ of }) => of.cell, "text"], ...ofCell], toValue);
  }
  output.finish();
  for (const each of silent) each.remark(`${describeFailure(each.failure)}\n`);
  const codes = (silent.length > 0 ? silent : cells).map(({ exitCode }) => exitCode);
  const exitCode = codes.toSorted().at(-1) ?? EXIT.ok;
  if (exitCode !== EXIT.ok) throw new Outcome(exitCode, "");
}

/** Numbers the greatest first, texts from A. */
function inOrder(a: number | string, b: number | string): number {
  return typeof a === "number" ? Number(b) - a : a < b ? -1 : 1;
}

function reasonOf({ failure }: CellOutput): string {
  return failure instanceof ServiceFailure ? failure.cause.reason : "FAILED";
}
