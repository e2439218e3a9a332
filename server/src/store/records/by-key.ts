/**
 * Conditions that make a join go by an index, one look for each row of its input, whatever Postgres' statistics say.
 *
 * Where they say that a table is all but empty, Postgres rather reads all of it and compares each of its rows with each of the
 * input, until the next `analyze`, which may be a minute away. They say so whenever vacuum came by after a quiet night: the
 * table's pages are filled again, and what the work grows with is the square of what came in.
 *
 * The conditions are true of every row, and are there for what Postgres believes of them. An equation of an expression holds
 * for one row in 200: two of them make the input appear to be a single row (`appearsSingle`). A comparison holds for one row in
 * three: it makes looking a key up appear cheaper than reading a table of one row. A statement that only reads from another table
 * needs none of it: it asks a lateral subquery with a limit, or an `exists` with an offset, which Postgres joins no other way.
 *
 * No condition on the table beside these may
 * fit another of its indexes, or the join might go by that one. `test/store/stale-statistics.test.ts` tests every statement.
 */

/** Makes an input appear to be a single row, by one of its columns of integers that are never null. */
export function appearsSingle(column: string): string {
  return `(${column} % 1, ${column} % -1) = (0, 0)`;
}

/** The row `r` of `records` with the key of a row of the input. */
export function ofKey(input: string): string {
  return `r.tenant_id = ${input}.tenant_id
     and r.namespace = ${input}.namespace
     and r.key = ${input}.key
     and r.key >= ${input}.key`;
}

/** Joins each row of the input to the row `r` of `records` with its key, by the primary key. */
export function byKey(input = "i"): string {
  return `${ofKey(input)}
     and ${appearsSingle(`${input}.tenant_id`)}`;
}
