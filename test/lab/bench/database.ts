import pg from "pg";

/** A database of the bench, for access without the service: filling tables, moving time, counting. */
export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

/** Opens a database; connects on first use. */
export function openBenchDatabase(url: string): BenchDatabase {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  // When the bench is interrupted, the database stops before it.
  pool.on("error", () => {});
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= pool.end();
    return closed;
  };
  return {
    url,
    query: async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(text, [...values])).rows,
    close,
    [Symbol.asyncDispose]: close,
  };
}
