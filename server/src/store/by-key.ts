/**
 * Joins each row `i` of an input to the row `r` of `records` with its key, by the primary key, whatever Postgres' statistics
 * say. Where they say that the table is all but empty, Postgres would otherwise rather read all of it and compare each of its
 * rows with each of the input: until the next `analyze`, which may be a minute away, work that grows with the square of what
 * came in since.
 *
 * The last two conditions are true of every row, and are there for what Postgres believes of them. An equation of an
 * expression holds for one row in 200: two of them make the input appear to be a single row. A comparison holds for one row
 * in three: it makes looking a key up appear cheaper than reading a table of one row. No condition beside these may fit
 * another index of the table, or the join might go by that one. `test/store/stale-statistics.test.ts` tests all of them.
 */
export const BY_KEY = `r.tenant_id = i.tenant_id
     and r.namespace = i.namespace
     and r.key = i.key
     and r.key >= i.key
     and (i.tenant_id % 1, i.tenant_id % -1) = (0, 0)`;
