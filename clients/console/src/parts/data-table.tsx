import { type MouseEvent, type ReactNode, type RefObject, useId, useRef } from "react";
import { Link } from "wouter";
import { useShortcut } from "../shell/use-shortcut.ts";
import styles from "../styles/table.module.css";

/** A column of a table. Numbers are aligned on the right, with digits of one width. */
export type Column<Row> = readonly [heading: string, cell: (row: Row) => ReactNode, kind?: "number"];

/** The columns of a table, of which the first heads its rows. */
export type Columns<Row> = readonly [Column<Row>, ...Column<Row>[]];

interface DataTableProps<Row> {
  /** Says what the rows are, unlike the other tables of the screen; shown above the table. */
  readonly caption: ReactNode;
  readonly columns: Columns<Row>;
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** Where a row leads, below `/console`: the first cell becomes the link. */
  readonly href?: (row: Row) => string;
  /** Undefined: rows are not chosen. */
  readonly selection?: RowSelection<Row>;
  /** All rows, in their order; undefined: they are not grouped. */
  readonly groups?: readonly RowGroup<Row>[];
}

/** Rows below each other that belong together. */
export interface RowGroup<Row> {
  /** Unlike that of the other groups. */
  readonly name: string;
  /** Undefined: nothing is above the rows. */
  readonly heading?: ReactNode;
  readonly rows: readonly Row[];
}

const NO_SELECTION: RowSelection<never> = { chosen: new Set(), choose() {}, nameOf: () => "" };

/**
 * A table whose first column heads its rows. In a narrow window each row is a card whose values have their headings beside them;
 * else wide tables scroll sideways in a region of their own, which the keyboard reaches.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, rowKey, selection, groups = [{ name: "", rows }] } = props;
  const captionId = useId();
  const table = useRef<HTMLTableElement>(null);
  const boxes = useRowBoxes(rows.map(rowKey), selection ?? NO_SELECTION);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard.
    <section className={styles.scroll} tabIndex={0} aria-labelledby={captionId}>
      {selection !== undefined && <RowKeys table={table} />}
      <table className={styles.table} ref={table}>
        <caption id={captionId}>{caption}</caption>
        <thead>
          <tr>
            {selection !== undefined && <td data-kind="box">{boxes.all}</td>}
            {columns.map(([heading, , kind]) =>
              // A column of names for the rows needs no heading: an empty one would be read aloud.
              heading === "" ? (
                <td key="" />
              ) : (
                <th key={heading} scope="col" data-kind={kind}>
                  {heading}
                </th>
              ),
            )}
          </tr>
        </thead>
        {groups.map(({ name, heading, rows: members }) => (
          <tbody key={name}>
            {heading !== undefined && (
              <tr className={styles.group}>
                {selection !== undefined && <td data-kind="box">{boxes.of(members.map(rowKey), name)}</td>}
                <td colSpan={columns.length}>{heading}</td>
              </tr>
            )}
            {members.map((row) => (
              <TableRow key={rowKey(row)} {...props} row={row} boxes={boxes} />
            ))}
          </tbody>
        ))}
      </table>
    </section>
  );
}

interface TableRowProps<Row> extends DataTableProps<Row> {
  readonly row: Row;
  readonly boxes: ReturnType<typeof useRowBoxes>;
}

function TableRow<Row>({ row, boxes, columns, rowKey, href, selection }: TableRowProps<Row>) {
  const [[, firstCell, firstKind], ...others] = columns;
  return (
    <tr data-chosen={selection?.chosen.has(rowKey(row))}>
      {selection !== undefined && <td data-kind="box">{boxes.of([rowKey(row)], selection.nameOf(row))}</td>}
      <th scope="row" data-kind={firstKind}>
        {href === undefined ? firstCell(row) : <Link href={href(row)}>{firstCell(row)}</Link>}
      </th>
      {others.map(([heading, cell, kind]) => (
        <td key={heading} data-kind={kind} data-heading={heading || undefined}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** The rows of a table that a person has chosen. */
interface RowSelection<Row> {
  /** The keys of the chosen rows, as `rowKey` gives them. */
  readonly chosen: ReadonlySet<string>;
  readonly choose: (chosen: ReadonlySet<string>) => void;
  /** Names a row for screen readers. */
  readonly nameOf: (row: Row) => string;
}

/** Returns the check boxes of a table: one for all rows, and those of some. Shift chooses all rows from the last one. */
function useRowBoxes(keys: readonly string[], { chosen, choose }: RowSelection<never>) {
  const last = useRef<string>(undefined);

  function toggle(some: readonly string[], event: MouseEvent<HTMLInputElement>): void {
    const [key = ""] = some;
    const from = event.shiftKey ? keys.indexOf(last.current ?? key) : -1;
    const to = keys.indexOf(key);
    const range = from < 0 ? some : keys.slice(Math.min(from, to), Math.max(from, to) + 1);
    const next = new Set(chosen);
    for (const each of range)
      if (event.currentTarget.checked) next.add(each);
      else next.delete(each);
    last.current = key;
    choose(next);
  }

  function boxOf(some: readonly string[], name: string) {
    const isChosen = some.length > 0 && some.every((key) => chosen.has(key));
    return (
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={isChosen}
        ref={(box) => {
          if (box !== null) box.indeterminate = !isChosen && some.some((key) => chosen.has(key));
        }}
        onClick={(event) => toggle(some, event)}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          focusRow(event.currentTarget.closest("table"), step, "input");
        }}
        readOnly
      />
    );
  }

  return { all: boxOf(keys, "all rows"), of: boxOf };
}

/** The keys of a table whose rows are chosen: they lead from row to row, and choose the one with the focus. */
function RowKeys({ table }: { readonly table: RefObject<HTMLTableElement | null> }) {
  useShortcut("j", "Next row", () => focusRow(table.current, 1, "a"));
  useShortcut("k", "Row before", () => focusRow(table.current, -1, "a"));
  useShortcut("x", "Select the row", () => focusRow(table.current, 0, "a")?.querySelector("input")?.click());
  return undefined;
}

/** Moves the focus to a control of another row, or of the first one if no row has the focus. Returns the row. */
function focusRow(table: HTMLTableElement | null, step: number, control: "a" | "input") {
  const rows = [...(table?.querySelectorAll<HTMLTableRowElement>("tr[data-chosen]") ?? [])];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[at < 0 ? 0 : at + step];
  row?.querySelector<HTMLElement>(control)?.focus();
  return row;
}
