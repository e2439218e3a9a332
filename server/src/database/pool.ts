import type { Socket } from "node:net";
import pg from "pg";
import {
  ACQUIRE_TIMEOUT_MS,
  QUERY_TIMEOUT_MS,
  STATEMENT_TIMEOUT_MS,
  USE_TIMEOUT_MS,
} from "../domain/statement-times.ts";
import type { RecordLoss } from "../records/late-keys.ts";
import { CommitWatch } from "./commit-watch.ts";
import {
  asRefusal,
  classify,
  isUnreachable,
  RolledBack,
  StatementFailed,
  TOOK_TOO_LONG,
  unavailable,
} from "./statement-errors.ts";

/** A named statement: prepared once per connection, then only bound and executed. */
export interface Statement {
  /** Also the `statement` label of its metrics. */
  readonly name: string;
  readonly text: string;
  /** The name under which it is prepared, if several texts share `name`. Unset: `name`. */
  readonly preparedName?: string;
}

/** Runs statements: each in a transaction of its own, or all in one. */
export interface Runner {
  /**
   * Runs one statement. `operations` is the number of operations in it, for the metrics.
   *
   * @throws Refusal DATABASE_UNAVAILABLE if Postgres cannot be reached, does not answer in time or accepts no
   *   writes: the statement may have had an effect.
   * @throws StatementFailed if Postgres refused this statement: it had no effect.
   */
  run<Row extends pg.QueryResultRow>(
    statement: Statement,
    parameters: readonly unknown[],
    operations?: number,
  ): Promise<Row[]>;
}

/** Runs statements, each in a transaction of its own, or several in one transaction. */
export interface Connection extends Runner {
  /**
   * Runs several statements in one transaction, and rolls it back if `work` throws. Isolation is READ
   * COMMITTED: lock the rows that a later statement relies on. For rare operations; callers' operations on
   * records never need it.
   *
   * @throws Refusal RECORD_CONTENDED if another transaction held a lock for too long, and as `run` does.
   */
  transaction<Result>(work: (transaction: Runner) => Promise<Result>): Promise<Result>;
}

/** The state of a pool's connections. */
export interface PoolLoad {
  readonly total: number;
  readonly idle: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
  /** Whether the last statement ended because Postgres did not answer, or accepted no statement. */
  readonly unreachable: boolean;
}

/** Runs statements on a bounded number of connections. */
export interface Pool extends Connection {
  /** Returns the state of the connections. */
  load(): PoolLoad;
  /**
   * Waits for running statements, then closes every connection. Statements that run longer than `limitMs` fail, because their
   * connections are closed. Unset: no limit.
   */
  close(limitMs?: number): Promise<void>;
}

/** A statement with its parameters. */
export interface BoundStatement {
  readonly statement: Statement;
  readonly parameters: readonly unknown[];
  /** As `Runner.run`. */
  readonly operations: number;
}

/** A pool that also runs statements in one round trip. */
export interface OpenedPool extends Pool {
  /**
   * Runs statements in one transaction, and returns what each settled with. All are sent before the first result arrives, if
   * the pool was opened for that (`PoolOptions.onShards`). Together they may take as long as one statement.
   *
   * @throws RolledBack if Postgres refused one of them: none had an effect.
   * @throws Refusal DATABASE_UNAVAILABLE as `run` does: all of them or none may have had an effect.
   */
  runTogether(statements: readonly BoundStatement[]): Promise<PromiseSettledResult<pg.QueryResultRow[]>[]>;
}

/** Receives what happens in a pool. No parameters of statements are passed. */
export interface PoolObserver {
  ran(run: {
    readonly statement: string;
    readonly operations: number;
    readonly durationMs: number;
    readonly failed: boolean;
  }): void;
  /** Called when an idle connection broke. */
  connectionLost(error: Error): void;
}

export interface PoolOptions {
  /** A function returns it for each new connection: its password may have changed. */
  readonly databaseUrl: string | (() => string);
  readonly size: number;
  /**
   * Whether the pool connects to PgBouncer in transaction mode. Then it uses no named statements and no
   * start-up settings, because PgBouncer does not keep them from one transaction to the next.
   */
  readonly throughPgBouncer: boolean;
  /**
   * Whether all statements name the tables of shards, which Postgres plans without Citus: plans are kept as on a
   * plain Postgres, and statements of a transaction are sent without waiting for the one before.
   */
  readonly onShards?: boolean;
  /**
   * Called for every new connection before any statement, because the connection may lead to another database
   * than earlier ones. If it returns false, it is called again before the connection's next use. If it
   * throws, the connection is closed and the call that needed it fails.
   */
  readonly onConnected?: (connection: Connection) => Promise<boolean>;
  /**
   * What `onConnected` knows of losses of records. If it learns of one while a call waits for its connection, the call fails,
   * because its parameters come from the database before the loss.
   */
  readonly recordLoss?: Readonly<RecordLoss>;
  /** What heartbeats know of commits that hang. */
  readonly commits?: CommitWatch;
  /**
   * Whether commits wait for no standby, for what may be lost in a failover; not through PgBouncer. Default: they wait as the
   * database's settings say.
   */
  readonly commitsLocally?: boolean;
}

/**
 * How values of Postgres are parsed. Statements return numbers and times as `numeric`, whose text is exact regardless of the
 * settings of the session. That of `float8` depends on extra_float_digits.
 */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (type: number, format?: "text" | "binary") =>
    type === pg.types.builtins.NUMERIC ? Number : pg.types.getTypeParser(type, format as "text"),
};

/** A locked row delays a batch by this much once; its operations are then retried one by one. */
const LOCK_TIMEOUT_MS = 1000;
/**
 * Postgres ends a transaction that waits this long for its next statement, so that a replica that was stopped
 * keeps its locks for no longer. Far longer than the time between two statements of a running replica.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 2000;

/**
 * Every statement finds rows by primary key and locks them in the order of their keys, which rules out
 * deadlocks: nested loops do so. (The sweep's deletion is the exception, and fails in a conflict.) Planning a
 * statement takes as long as running it for a single call, so plans are kept.
 *
 * Before Postgres 18, a sequential scan that nothing can replace, such as that of a table with one row, gets an
 * enormous cost while `enable_seqscan` is off. `jit` would compile such a statement in every run: 0.1 to 0.5 s.
 */
const PLANNER_SETTINGS = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
  jit: "off",
};

/**
 * The settings on which the answer of a statement can depend: what its text means, how Citus passes values to a node, and how
 * Postgres writes them. A database or a role may have others. Behind PgBouncer none is sent, so statements return nothing whose text
 * depends on them: numbers and times as `numeric`, times that come back to Postgres as JSON writes them.
 */
export const ANSWER_SETTINGS = {
  array_nulls: "on",
  bytea_output: "hex",
  DateStyle: "ISO, MDY",
  default_transaction_isolation: "read committed",
  extra_float_digits: "1",
  IntervalStyle: "postgres",
  quote_all_identifiers: "off",
  standard_conforming_strings: "on",
  TimeZone: "UTC",
  transform_null_equals: "off",
};

/** The settings that a pool sends when it connects, unless through PgBouncer. */
export const START_UP_SETTINGS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  lock_timeout: LOCK_TIMEOUT_MS,
  idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  options: Object.entries({ ...PLANNER_SETTINGS, ...ANSWER_SETTINGS })
    .map(([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`)
    .join(" "),
} as const;

const { plan_cache_mode: _, ...WORKER_PLANNER_SETTINGS } = PLANNER_SETTINGS;

/**
 * The settings of Citus' own sessions on its workers (`distributeRecords`). The time limits of statements and
 * transactions are those of the coordinator, and would end the copying of shards.
 */
export const WORKER_SETTINGS = {
  lock_timeout: LOCK_TIMEOUT_MS,
  ...WORKER_PLANNER_SETTINGS,
  ...ANSWER_SETTINGS,
} as const;

/**
 * Sent on each new connection. Citus refuses to plan a statement without the values of its parameters, so on
 * Citus each run is planned separately.
 */
const CHOOSE_PLANS =
  "select set_config('plan_cache_mode', 'auto', false) from pg_extension where extname = 'citus'";

/**
 * How long plans are kept. A plan that was made while the table had no page may read the whole table, and must not
 * be used after the first thousands of rows. No condition in a statement prevents such a plan: reading an
 * empty index and searching in it have the same estimated cost (decision 0001).
 */
const PLAN_LIFETIME_MS = 250;

const REPLACED = "the database was replaced while the statement waited for a connection";
const NO_TIME = "no time is left for the statement";

/**
 * Fails a round trip that has taken longer than a statement may. Each of its statements has a limit of its own, and Postgres
 * runs those that it has received also after the client has closed the connection.
 */
const CHECK_AGE = {
  name: "check_age",
  text: `select (case when clock_timestamp() - now() < interval '${STATEMENT_TIMEOUT_MS} ms' then '1' else '${TOOK_TOO_LONG}' end)::int`,
};

/** Of pools that no one tells of commits. */
const NEVER_HANG = new CommitWatch();

/** For commands and tests, which see errors in their own calls. */
const UNOBSERVED: PoolObserver = { ran: () => {}, connectionLost: () => {} };

/** Opens a pool; connects on first use. */
export function openPool(options: PoolOptions, observer: PoolObserver = UNOBSERVED): OpenedPool {
  const direct = !options.throughPgBouncer;
  const { pool, close } = createClientPool(options, observer);
  const plannedAtMs = new WeakMap<pg.PoolClient, number>();
  const announce = announcer(options.onConnected);
  let unreachable = false;
  let isClosing = false;

  /**
   * Runs `use` on a connection. A connection on which anything failed is closed, unless Postgres refused a statement
   * of `use`.
   *
   * @param timeoutMs the time for everything, from the wait for a connection on. Then the connection is closed.
   */
  async function withConnection<Result>(
    use: (client: pg.PoolClient) => Promise<Result>,
    timeoutMs?: number,
  ): Promise<Result> {
    const startedAtMs = performance.now();
    const lostAtMs = options.recordLoss?.lastAtMs;
    const client = await pool.connect();
    const leftMs = (timeoutMs ?? 0) - (performance.now() - startedAtMs);
    const timer = timeoutMs && setTimeout(() => abort(client), Math.max(0, leftMs));
    let prepared = false;
    let failure: Error | undefined;
    const release = () => client.release(prepared && isRefused(failure) ? undefined : failure);
    try {
      if (direct)
        await discardOldPlans(client, plannedAtMs, options.onShards === true ? "select" : CHOOSE_PLANS);
      await announce(client, runnerOf(client));
      if (lostAtMs !== undefined && lostAtMs !== options.recordLoss?.lastAtMs) throw new Error(REPLACED);
      if (timeoutMs !== undefined && performance.now() - startedAtMs >= timeoutMs) throw new Error(NO_TIME);
      prepared = true;
      return await use(client);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw failure;
    } finally {
      clearTimeout(timer);
      if (isClosing || failure === undefined || isAnswered(failure)) release();
      else (options.commits ?? NEVER_HANG).afterHang(release);
    }
  }

  type Query = <Row extends pg.QueryResultRow>(config: pg.QueryConfig) => Promise<Row[]>;

  function runnerOn(query: Query): Runner["run"] {
    return async ({ name, text, preparedName = name }, parameters, operations = 1) => {
      const startedAtMs = performance.now();
      let failed = true;
      try {
        const rows = await query<never>({
          text,
          values: [...parameters],
          ...(direct && { name: preparedName }),
        });
        failed = false;
        unreachable = false;
        return rows;
      } catch (error) {
        unreachable = isUnreachable(error);
        throw refusalOf(error, options.commits);
      } finally {
        observer.ran({ statement: name, operations, durationMs: performance.now() - startedAtMs, failed });
      }
    };
  }

  function runnerOf(client: pg.PoolClient): Runner["run"] {
    return runnerOn(async (config) => (await client.query(config)).rows);
  }

  return {
    run: runnerOn((config) =>
      withConnection(async (client) => (await client.query(config)).rows, USE_TIMEOUT_MS),
    ),
    async runTogether(statements) {
      try {
        return await withConnection(
          (client) => inOneRoundTrip(client, runnerOf(client), statements),
          USE_TIMEOUT_MS,
        );
      } catch (error) {
        if (error instanceof RolledBack) throw error;
        unreachable = isUnreachable(error);
        throw refusalOf(error, options.commits);
      }
    },
    async transaction(work) {
      const settled = withConnection((client) => inTransaction(client, runnerOf(client), work));
      return fulfilled(await settled.catch((error: unknown) => Promise.reject(classify(error))));
    },
    load: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount, unreachable }),
    close(limitMs) {
      isClosing = true;
      options.commits?.releaseAll();
      return close(limitMs);
    },
  };
}

/** Returns a function that calls `onConnected` for a connection, until it returns anything but false. */
function announcer(onConnected: PoolOptions["onConnected"]) {
  const announced = new WeakSet<pg.PoolClient>();
  return async (client: pg.PoolClient, run: Runner["run"]) => {
    if (announced.has(client)) return;
    const isDone = await onConnected?.({
      run,
      transaction: async (work) => fulfilled(await inTransaction(client, run, work)),
    });
    if (isDone !== false) announced.add(client);
  };
}

/** Returns what a statement is refused with. While commits hang, a lock is most likely that of a commit that hangs. */
function refusalOf(error: unknown, commits: CommitWatch | undefined): Error {
  const refusal = classify(error);
  const waitsForCommit = commits?.hang && refusal instanceof StatementFailed && refusal.isLockConflict;
  return waitsForCommit ? unavailable(refusal) : refusal;
}

/** Closes a connection at once; the statement in progress fails. */
function abort(client: pg.Client): void {
  // The types lack it, and `end` waits for statements that were sent in one round trip.
  (client as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream.destroy();
}

/** Returns whether Postgres has answered, so that the session runs nothing more. */
function isAnswered(failure: Error): boolean {
  return failure instanceof pg.DatabaseError || failure instanceof RolledBack;
}

/** Returns whether a statement was refused on a connection that can be used further. */
function isRefused(failure: Error | undefined): boolean {
  if (failure === undefined || failure instanceof RolledBack) return true;
  return failure instanceof pg.DatabaseError && classify(failure) instanceof StatementFailed;
}

async function inTransaction<Result>(
  client: pg.PoolClient,
  run: Runner["run"],
  work: (transaction: Runner) => Promise<Result>,
): Promise<PromiseSettledResult<Result>> {
  await client.query("begin");
  const [outcome] = await Promise.allSettled([work({ run })]);
  await client.query(outcome.status === "fulfilled" ? "commit" : "rollback");
  return outcome;
}

async function inOneRoundTrip(
  client: pg.PoolClient,
  run: Runner["run"],
  statements: readonly BoundStatement[],
): Promise<PromiseSettledResult<pg.QueryResultRow[]>[]> {
  const begun = client.query("begin");
  const results = Promise.allSettled(
    statements.map(({ statement, parameters, operations }) => run<never>(statement, parameters, operations)),
  );
  const aged = Promise.allSettled([client.query(CHECK_AGE)]);
  const [, settled, [age], ended] = await Promise.all([begun, results, aged, client.query("commit")]);
  // Postgres answers the commit of a transaction that failed with ROLLBACK.
  if (ended.command !== "ROLLBACK") return settled;
  const refused = settled.findIndex(({ status }) => status === "rejected");
  if (refused === -1) throw (age as PromiseRejectedResult).reason;
  throw new RolledBack(refused, (settled[refused] as PromiseRejectedResult).reason);
}

/** Creates a pool of connections, and the function that closes it, as Pool.close. */
function createClientPool(options: PoolOptions, observer: PoolObserver) {
  const open = new Set<pg.Client>();
  const pool = new pg.Pool({
    Client: clientClass(options.databaseUrl, open),
    max: options.size,
    application_name: "onceward",
    connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    pipeline: options.onShards === true,
    types: TYPES,
    ...(!options.throughPgBouncer && startUpSettings(options)),
  });
  pool.on("error", (error) => observer.connectionLost(error));
  // The pool does not listen to a connection that is checked out, and an error event without a listener ends
  // the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    pool,
    async close(limitMs?: number): Promise<void> {
      const timer = limitMs === undefined ? undefined : setTimeout(() => open.forEach(abort), limitMs);
      await pool.end();
      clearTimeout(timer);
    },
  };
}

function startUpSettings({ commitsLocally = false }: PoolOptions) {
  if (!commitsLocally) return START_UP_SETTINGS;
  return { ...START_UP_SETTINGS, options: `${START_UP_SETTINGS.options} -c synchronous_commit=local` };
}

/** Returns a class of clients that read the address when they are made, and are in `open` until they are closed. */
function clientClass(databaseUrl: PoolOptions["databaseUrl"], open: Set<pg.Client>): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      const connectionString = typeof databaseUrl === "string" ? databaseUrl : databaseUrl();
      super({ ...config, connectionString });
      open.add(this);
      this.once("end", () => open.delete(this));
    }
  };
}

/**
 * Discards a connection's plans if they are too old, and chooses the kind of plans on a new connection.
 * `plannedAtMs` holds when each connection last did so.
 */
async function discardOldPlans(
  client: pg.PoolClient,
  plannedAtMs: WeakMap<pg.PoolClient, number>,
  choosePlans: string,
): Promise<void> {
  const nowMs = performance.now();
  const lastMs = plannedAtMs.get(client);
  if (lastMs !== undefined && nowMs - lastMs < PLAN_LIFETIME_MS) return;
  plannedAtMs.set(client, nowMs);
  await client.query(lastMs === undefined ? choosePlans : "discard plans");
}

function fulfilled<Result>(outcome: PromiseSettledResult<Result>): Result {
  if (outcome.status === "rejected") throw asRefusal(outcome.reason);
  return outcome.value;
}
