import { type ReactNode, useId } from "react";
import { Link } from "wouter";
import styles from "../styles/table.module.css";
import { type RowSelection, useRowBoxes } from "./row-selection.tsx";

/** A column of a table. */
export interface Column<Row> {
  readonly heading: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are aligned on the right, with digits of one width. */
  readonly kind?: "text" | "number";
}

interface DataTableProps<Row> {
  /** Says what the rows are, unlike the other tables of the screen; shown above the table. */
  readonly caption: ReactNode;
  readonly columns: readonly Column<Row>[];
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
  const [first, ...others] = columns;
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
            {columns.map((column, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table stay in place.
              <ColumnHead key={index} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} data-chosen={selection?.chosen.has(rowKey(row))}>
              {selection !== undefined && (
                <td data-kind="box">{boxes.of(rowKey(row), selection.nameOf(row))}</td>
              )}
              {first !== undefined && (
                <th scope="row" data-kind={first.kind}>
                  {href === undefined ? first.cell(row) : <Link href={href(row)}>{first.cell(row)}</Link>}
                </th>
              )}
              {others.map((column, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table stay in place.
                <td key={index} data-kind={column.kind} data-heading={headingOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** What a card has before a value; undefined: nothing. */
function headingOf<Row>({ heading }: Column<Row>): string | undefined {
  return typeof heading === "string" && heading !== "" ? heading : undefined;
}

/** A column of names for the rows needs no heading: an empty one would be read aloud. */
function ColumnHead<Row>({ column: { heading, kind } }: { readonly column: Column<Row> }) {
  if (heading === "") return <td />;
  return (
    <th scope="col" data-kind={kind}>
      {heading}
    </th>
  );
}
