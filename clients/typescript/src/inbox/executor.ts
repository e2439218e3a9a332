/** A row whose columns are text, whatever the driver makes of other types. */
export type TextRow = Readonly<Record<string, string | null>>;

/**
 * Runs one statement, whose parameters are `$1`, `$2`, …, and answers its rows.
 *
 * Every parameter is text or null and every column that comes back is text, so that no driver's conversions matter. What
 * a driver needs is three lines; with Prisma's interactive transaction, for example:
 *
 * ```ts
 * const executor: Executor = (text, params) => tx.$queryRawUnsafe(text, ...params);
 * ```
 */
export type Executor = (text: string, params: readonly (string | null)[]) => Promise<readonly TextRow[]>;

/**
 * Over `pg`: a client with a transaction begun for `once` and `completeIn`, a pool for `startRelay` and `sweep`.
 *
 * A client of a pool that must go back to it: `const client = await pool.connect()`, not the pool itself.
 */
export function pgExecutor(client: {
  query(text: string, params: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}): Executor {
  return async (text, params) => (await client.query(text, [...params])).rows as readonly TextRow[];
}

/** Over `postgres` (Postgres.js): the `sql` of a transaction's `sql.begin`, or the `sql` of the pool. */
export function postgresExecutor(sql: {
  unsafe(text: string, params: (string | null)[]): PromiseLike<readonly unknown[]>;
}): Executor {
  return async (text, params) => (await sql.unsafe(text, [...params])) as readonly TextRow[];
}

/** A query that needs no compiling, as Kysely takes it. */
interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: "RawNode";
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly [];
  };
  readonly queryId: { readonly queryId: string };
}

/** Over Kysely on Postgres: a `Transaction`, or the `Kysely` itself. */
export function kyselyExecutor(trx: {
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }>;
}): Executor {
  return async (text, params) => {
    const { rows } = await trx.executeQuery({
      sql: text,
      parameters: params,
      query: { kind: "RawNode", sqlFragments: [text], parameters: [] },
      queryId: { queryId: "onceward" },
    });
    return rows as readonly TextRow[];
  };
}

/** The tag `sql` that drizzle-orm exports. */
interface DrizzleSql<Sql> {
  (strings: TemplateStringsArray, ...params: unknown[]): Sql;
  raw(text: string): Sql;
  join(chunks: Sql[]): Sql;
}

/**
 * Over Drizzle on Postgres (node-postgres and Postgres.js): a transaction's `tx`, or the database itself.
 *
 * @param sql the tag of `import { sql } from "drizzle-orm"`: the only way to hand Drizzle a parameter.
 */
export function drizzleExecutor<Sql>(
  tx: { execute(query: Sql): PromiseLike<unknown> },
  sql: DrizzleSql<Sql>,
): Executor {
  return async (text, params) => {
    // Split by a group, every second part is a parameter's number.
    const chunks = text
      .split(/\$(\d+)/)
      .map((part, index) => (index % 2 === 0 ? sql.raw(part) : sql`${params[Number(part) - 1]}`));
    const result = await tx.execute(sql.join(chunks));
    const rows = Array.isArray(result) ? result : (result as { readonly rows: unknown }).rows;
    return rows as readonly TextRow[];
  };
}
