import pg from "pg";
import { Refusal } from "../domain/refusal.ts";

/** A statement with a name: prepared once per connection, then only bound and run. */
export interface Statement {
  /** Also the `statement` label of its metrics. */
  readonly name: string;
  readonly text: string;
}

/** Where statements run: one by one, or within a transaction. */
export interface Runner {
  /**
   * Runs one statement. `operations` is how many calls it answers, for the metrics.
   *
   * @throws Refusal DATABASE_UNAVAILABLE where Postgres cannot be reached, does not answer in time or cannot take
   *   writes: the statement may have had an effect.
   * @throws StatementFailed where Postgres refused this statement: it had no effect.
   */
  run<Row extends pg.QueryResultRow>(
    statement: Statement,
    parameters: readonly unknown[],
    operations?: number,
  ): Promise<Row[]>;
}

/** Runs statements, each in a transaction of its own or several in one. */
export interface Connection extends Runner {
  /**
   * Runs several statements as one: all of them, or, if `work` throws, none. Isolation is READ COMMITTED: lock what a
   * later statement relies on. For what is rare; records' own statements never need it.
   *
   * @throws Refusal RECORD_CONTENDED where another transaction was in the way for too long, and as `run` does.
   */
  transaction<Result>(work: (transaction: Runner) => Promise<Result>): Promise<Result>;
}

/** Runs statements on a bounded number of connections. */
export interface Pool extends Connection {
  /** Connections in use and calls waiting for one. */
  load(): { readonly total: number; readonly idle: number; readonly waiting: number };
  /** Waits for what is running, then closes every connection. */
  close(): Promise<void>;
}

/** Postgres refused a statement for a reason of its own; nothing was changed. */
export class StatementFailed extends Error {
  override readonly name = "StatementFailed";
  readonly sqlState: string;
  constructor(sqlState: string, cause: Error) {
    super(`statement failed with SQLSTATE ${sqlState}`, { cause });
    this.sqlState = sqlState;
  }

  /** Another transaction was in the way: lock_not_available, deadlock_detected, serialization_failure. */
  get isLockConflict(): boolean {
    return ["55P03", "40P01", "40001"].includes(this.sqlState);
  }
}

/** What the pool reports; nothing of it holds a parameter. */
export interface PoolObserver {
  ran(run: {
    readonly statement: string;
    readonly operations: number;
    readonly durationMs: number;
    readonly failed: boolean;
  }): void;
  /** An idle connection broke. */
  connectionLost(error: Error): void;
}

export interface PoolOptions {
  readonly databaseUrl: string;
  readonly size: number;
  /**
   * The pool talks to PgBouncer in transaction mode: no named statements and no start-up settings, which it would not
   * carry from one transaction to the next.
   */
  readonly throughPgBouncer: boolean;
  /**
   * Runs on every new connection before any statement does: it may have come to another database than the one before. False: it
   * has to run again before the connection is used again. What it throws ends the connection, and the call that was to use it.
   */
  readonly onConnected?: (connection: Connection) => Promise<boolean>;
}

/** Postgres ends a statement after this; below the client's own limit, so that the usual error comes from Postgres. */
const STATEMENT_TIMEOUT_MS = 5000;
/** A row that somebody keeps locked costs a batch this much once; its items then go on one by one. */
const LOCK_TIMEOUT_MS = 1000;
/**
 * Postgres ends a transaction that waits this long for its next statement: a replica that was stopped in the middle keeps
 * its locks for no longer. Far above what lies between two statements of a replica that runs.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 2000;
/** The client gives a connection up for dead after this. */
const QUERY_TIMEOUT_MS = 6000;
/** How long to wait for a connection. */
const ACQUIRE_TIMEOUT_MS = 3000;
/** What callers are told to wait when Postgres is away. */
const RETRY_AFTER_MS = 500;

/**
 * Every statement looks rows up by primary key, and takes their locks in the order of their key, which rules deadlocks
 * out: nested loops do. (The sweep's deletion is the exception, and gives way.) Planning one takes as long as running it
 * for a lone call, so plans are kept.
 */
const PLANNER_SETTINGS = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
};

/**
 * Plans are kept for so long: one from a time when the table was all but empty would read the whole table, and must not
 * outlive the first thousands of rows.
 */
const PLAN_LIFETIME_MS = 250;

/** For a command or a test: what fails shows in its calls. */
const UNOBSERVED: PoolObserver = { ran: () => {}, connectionLost: () => {} };

/** Opens a pool; connects on first use. */
export function openPool(options: PoolOptions, observer: PoolObserver = UNOBSERVED): Pool {
  const direct = !options.throughPgBouncer;
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max: options.size,
    application_name: "onceward",
    connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    ...(direct && {
      statement_timeout: STATEMENT_TIMEOUT_MS,
      lock_timeout: LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
      options: Object.entries(PLANNER_SETTINGS)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(" "),
    }),
  });
  pool.on("error", (error) => observer.connectionLost(error));
  // A connection that is checked out has no listener of the pool's, and an unheard error would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));

  const plannedAtMs = new WeakMap<pg.PoolClient, number>();
  const examined = new WeakSet<pg.PoolClient>();

  async function examine(client: pg.PoolClient): Promise<void> {
    if (examined.has(client)) return;
    const isDone = await options.onConnected?.({
      run: runnerOn(async (config) => (await client.query(config)).rows),
      transaction: async (work) => fulfilled(await inTransaction(client, work)),
    });
    if (isDone !== false) examined.add(client);
  }

  /** Lets a connection plan anew what it runs next, if its plans are old. */
  async function renewPlans(client: pg.PoolClient): Promise<void> {
    const nowMs = performance.now();
    const lastMs = plannedAtMs.get(client);
    if (lastMs !== undefined && nowMs - lastMs < PLAN_LIFETIME_MS) return;
    plannedAtMs.set(client, nowMs);
    if (lastMs !== undefined) await client.query("discard plans");
  }

  /** A connection on which anything failed is not used again. */
  async function withConnection<Result>(use: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await pool.connect();
    let failure: Error | undefined;
    try {
      if (direct) await renewPlans(client);
      await examine(client);
      return await use(client);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw failure;
    } finally {
      client.release(failure);
    }
  }

  type Query = <Row extends pg.QueryResultRow>(config: pg.QueryConfig) => Promise<Row[]>;

  function runnerOn(query: Query): Runner["run"] {
    return async ({ name, text }, parameters, operations = 1) => {
      const startedAtMs = performance.now();
      let failed = true;
      try {
        const rows = await query<never>({ text, values: [...parameters], ...(direct && { name }) });
        failed = false;
        return rows;
      } catch (error) {
        throw classify(error);
      } finally {
        observer.ran({ statement: name, operations, durationMs: performance.now() - startedAtMs, failed });
      }
    };
  }

  async function inTransaction<Result>(
    client: pg.PoolClient,
    work: (transaction: Runner) => Promise<Result>,
  ): Promise<PromiseSettledResult<Result>> {
    await client.query("begin");
    const transaction = { run: runnerOn(async (config) => (await client.query(config)).rows) };
    const [outcome] = await Promise.allSettled([work(transaction)]);
    await client.query(outcome.status === "fulfilled" ? "commit" : "rollback");
    return outcome;
  }

  return {
    run: runnerOn((config) => withConnection(async (client) => (await client.query(config)).rows)),
    async transaction(work) {
      const settled = withConnection((client) => inTransaction(client, work));
      return fulfilled(await settled.catch((error: unknown) => Promise.reject(classify(error))));
    },
    load: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close: () => pool.end(),
  };
}

function fulfilled<Result>(outcome: PromiseSettledResult<Result>): Result {
  if (outcome.status === "rejected") throw asRefusal(outcome.reason);
  return outcome.value;
}

/** Somebody else keeps what the transaction needs: no defect, and nothing was changed. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof StatementFailed && error.isLockConflict)) return error;
  return new Refusal("RECORD_CONTENDED", "Another transaction was in the way.", {
    retryAfterMs: RETRY_AFTER_MS,
    cause: error,
  });
}

/**
 * SQLSTATE classes that mean "not now" rather than "not this": connection (08), insufficient resources (53), operator
 * intervention (57), system error (58), read-only transaction (25006); and what only connecting is refused with: a role
 * (28), no such database (3D), one that takes no connections (55000).
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const UNAVAILABLE_STATE = /^(08|28|3D|53|57|58|25006|55000)/;

function classify(error: unknown): Error {
  const cause = error instanceof Error ? error : new Error(String(error));
  const sqlState = (cause as { code?: unknown }).code;
  const refusedByPostgres = cause instanceof pg.DatabaseError && typeof sqlState === "string";
  if (refusedByPostgres && !UNAVAILABLE_STATE.test(sqlState)) return new StatementFailed(sqlState, cause);
  return new Refusal("DATABASE_UNAVAILABLE", "The database could not be reached or did not answer in time.", {
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}
