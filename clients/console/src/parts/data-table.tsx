import { type ReactNode, useId } from "react";
import { Link } from "wouter";
import styles from "../styles/table.module.css";
import { type RowSelection, useRowBoxes } from "./row-selection.tsx";

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
