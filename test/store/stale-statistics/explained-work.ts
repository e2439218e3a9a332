import type { Pool } from "../../../server/src/database/pool.ts";

/** What a part of the server does in the database, as `stale-statistics.test.ts` explains it. */
export interface ExplainedWork {
  /** Work on a batch of rows that are found by their keys: no statement processes as many rows as the table has. */
  readonly byKeys?: Readonly<Record<string, (pool: Pool) => Promise<unknown>>>;
  /** Work on all rows of a range: a statement may process each row in a few nodes of its plan. */
  readonly overARange?: Readonly<Record<string, (pool: Pool) => Promise<unknown>>>;
  /** Names of statements on the one row of a primary key or a unique name, or on a table of one row. */
  readonly onOneRow?: readonly string[];
  /** Names of statements that other tests explain. */
  readonly elsewhere?: readonly string[];
}
