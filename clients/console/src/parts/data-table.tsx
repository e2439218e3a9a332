import { type ReactNode, useId } from "react";
import { Link } from "wouter";
import styles from "./data-table.module.css";

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
}

/**
 * A table whose first column heads its rows. Wide tables scroll sideways in a region of their own, which the keyboard
 * reaches.
 */
export function DataTable<Row>({ caption, columns, rows, rowKey, href }: DataTableProps<Row>) {
  const [first, ...others] = columns;
  const captionId = useId();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard.
    <section className={styles.scroll} tabIndex={0} aria-labelledby={captionId}>
      <table className={styles.table}>
        <caption id={captionId}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table stay in place.
              <ColumnHead key={index} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {first !== undefined && (
                <th scope="row" data-kind={first.kind}>
                  {href === undefined ? first.cell(row) : <Link href={href(row)}>{first.cell(row)}</Link>}
                </th>
              )}
              {others.map((column, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a table stay in place.
                <td key={index} data-kind={column.kind}>
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

/** A column of names for the rows needs no heading: an empty one would be read aloud. */
function ColumnHead<Row>({ column: { heading, kind } }: { readonly column: Column<Row> }) {
  if (heading === "") return <td />;
  return (
    <th scope="col" data-kind={kind}>
      {heading}
    </th>
  );
}
