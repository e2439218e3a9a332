/** A row of text columns: drivers convert other types in different ways. */
export type TextRow = Readonly<Record<string, string | null>>;

/**
 * Runs one statement with the parameters `$1`, `$2`, …, and resolves with its rows.
 *
 * Every parameter is text or null, and every returned column is text, so that drivers' conversions don't matter. An
 * executor for another driver takes three lines, such as those of {@link pgExecutor}.
 */
export type Executor = (text: string, params: readonly (string | null)[]) => Promise<readonly TextRow[]>;

/**
 * Returns an executor for `pg`: of a client in a transaction for `once` and `completeIn`, of a pool for `startRelay`
 * and `sweep`. For a transaction, take a client with `await pool.connect()`, and release it afterwards.
 */
export function pgExecutor(client: {
  query(text: string, params: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}): Executor {
  return async (text, params) => (await client.query(text, [...params])).rows as readonly TextRow[];
}

/**
 * Returns an executor for `postgres` (Postgres.js): of the `sql` of `sql.begin` for a transaction, or the pool's
 * `sql`.
 */
export function postgresExecutor(sql: {
  unsafe(text: string, params: (string | null)[]): PromiseLike<readonly unknown[]>;
}): Executor {
  return async (text, params) => (await sql.unsafe(text, [...params])) as readonly TextRow[];
}

/**
 * Returns an executor for TypeORM on Postgres: of the `EntityManager` or `QueryRunner` of a transaction, or the
 * `DataSource` itself.
 */
export function typeormExecutor(manager: {
  query(text: string, params: unknown[]): Promise<unknown>;
}): Executor {
  return async (text, params) => {
    const result = (await manager.query(text, [...params])) as readonly unknown[];
    // Of an update or a deletion, it is the rows and their number.
    return (Array.isArray(result[0]) ? result[0] : result) as readonly TextRow[];
  };
}

/**
 * Returns an executor for Prisma on Postgres: of the `tx` of an interactive transaction (`prisma.$transaction(async
 * (tx) => …)`), or the client itself. An array of queries in `$transaction` does not fit: the inbox reads answers between its
 * statements.
 */
export function prismaExecutor(tx: {
  $queryRawUnsafe(text: string, ...params: unknown[]): PromiseLike<unknown>;
}): Executor {
  return async (text, params) => (await tx.$queryRawUnsafe(text, ...params)) as readonly TextRow[];
}

/** A compiled query, as Kysely accepts it. */
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

/** Returns an executor for Kysely on Postgres: of a `Transaction`, or the `Kysely` itself. */
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
 * Returns an executor for Drizzle on Postgres (node-postgres and Postgres.js): of a transaction's `tx`, or the
 * database itself.
 *
 * @param sql the tag of `import { sql } from "drizzle-orm"`: the only way to pass Drizzle a parameter.
 */
export function drizzleExecutor<Sql>(
  tx: { execute(query: Sql): PromiseLike<unknown> },
  sql: DrizzleSql<Sql>,
): Executor {
  return async (text, params) => {
    // Splitting by a capturing group makes every second part a parameter's number.
    const chunks = text
      .split(/\$(\d+)/)
      .map((part, index) => (index % 2 === 0 ? sql.raw(part) : sql`${params[Number(part) - 1]}`));
    const result = await tx.execute(sql.join(chunks));
    const rows = Array.isArray(result) ? result : (result as { readonly rows: unknown }).rows;
    return rows as readonly TextRow[];
  };
}
