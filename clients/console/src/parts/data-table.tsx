import { type KeyboardEvent, type MouseEvent, type ReactNode, useId, useRef } from "react";
import { Link } from "wouter";
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
}

const NO_SELECTION: RowSelection<never> = { chosen: new Set(), choose() {}, nameOf: () => "" };

/**
 * A table whose first column heads its rows. In a narrow window each row is a card whose values have their headings beside them;
 * else wide tables scroll sideways in a region of their own, which the keyboard reaches.
 */
export function DataTable<Row>({ caption, columns, rows, rowKey, href, selection }: DataTableProps<Row>) {
  const [[, firstCell, firstKind], ...others] = columns;
  const captionId = useId();
  const boxes = useRowBoxes(rows.map(rowKey), selection ?? NO_SELECTION);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard.
    <section className={styles.scroll} tabIndex={0} aria-labelledby={captionId}>
      <table className={styles.table}>
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
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} data-chosen={selection?.chosen.has(rowKey(row))}>
              {selection !== undefined && (
                <td data-kind="box">{boxes.of(rowKey(row), selection.nameOf(row))}</td>
              )}
              <th scope="row" data-kind={firstKind}>
                {href === undefined ? firstCell(row) : <Link href={href(row)}>{firstCell(row)}</Link>}
              </th>
              {others.map(([heading, cell, kind]) => (
                <td key={heading} data-kind={kind} data-heading={heading || undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
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

/** Returns the check boxes of a table: one for all rows, and one for each. Shift chooses all rows from the last one. */
function useRowBoxes(keys: readonly string[], { chosen, choose }: RowSelection<never>) {
  const last = useRef<string>(undefined);
  const isAll = keys.length > 0 && keys.every((key) => chosen.has(key));

  function toggle(key: string, event: MouseEvent<HTMLInputElement>): void {
    const from = event.shiftKey ? keys.indexOf(last.current ?? key) : -1;
    const to = keys.indexOf(key);
    const range = from < 0 ? [key] : keys.slice(Math.min(from, to), Math.max(from, to) + 1);
    const next = new Set(chosen);
    for (const each of range)
      if (event.currentTarget.checked) next.add(each);
      else next.delete(each);
    last.current = key;
    choose(next);
  }

  return {
    all: (
      <input
        type="checkbox"
        aria-label="Select all rows"
        checked={isAll}
        ref={(box) => {
          if (box !== null) box.indeterminate = !isAll && chosen.size > 0;
        }}
        onChange={() => choose(new Set(isAll ? [] : keys))}
      />
    ),
    of: (key: string, name: string) => (
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={chosen.has(key)}
        onClick={(event) => toggle(key, event)}
        onKeyDown={moveBetweenRows}
        readOnly
      />
    ),
  };
}

/** The arrow keys lead to the boxes of the rows above and below. */
function moveBetweenRows(event: KeyboardEvent<HTMLInputElement>): void {
  const row = event.currentTarget.closest("tr");
  const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key];
  if (!next) return;
  event.preventDefault();
  next.querySelector<HTMLElement>("input[type=checkbox]")?.focus();
}
