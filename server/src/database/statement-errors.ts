import pg from "pg";
import { Refusal } from "../domain/refusal.ts";
import { RESEND_WITHIN_MS } from "../domain/statement-times.ts";

/** Postgres refused a statement. Nothing was changed. */
export class StatementFailed extends Error {
  override readonly name = "StatementFailed";
  readonly sqlState: string;
  constructor(sqlState: string, cause: Error) {
    super(`statement failed with SQLSTATE ${sqlState}`, { cause });
    this.sqlState = sqlState;
  }

  /**
   * Whether another transaction was the cause: lock_not_available, deadlock_detected, serialization_failure.
   */
  get isLockConflict(): boolean {
    return ["55P03", "40P01", "40001"].includes(this.sqlState);
  }
}

/** Postgres refused one of several statements of a transaction. Nothing was changed. */
export class RolledBack extends Error {
  override readonly name = "RolledBack";
  /** The index of the statement that was refused. */
  readonly refused: number;
  /** What `run` would have thrown for it. */
  override readonly cause: unknown;
  constructor(refused: number, cause: unknown) {
    super(`statement ${refused} of a transaction was refused`);
    this.refused = refused;
    this.cause = cause;
  }
}

/** Retry delay for callers while Postgres is unavailable. */
const RETRY_AFTER_MS = 500;

/** Converts a lock conflict into RECORD_CONTENDED: the server works as designed, and nothing was changed. */
export function asRefusal(error: unknown, lock = "a lock that this one needs"): unknown {
  if (!(error instanceof StatementFailed && error.isLockConflict)) return error;
  return new Refusal("RECORD_CONTENDED", `Another transaction holds ${lock}.`, {
    retryAfterMs: RETRY_AFTER_MS,
    cause: error,
  });
}

/**
 * SQLSTATE classes of temporary errors, which do not concern the statement: connection (08), insufficient
 * resources (53), operator intervention (57), system error (58), read-only transaction (25006), a transaction that
 * Postgres ended because it was idle or too long (25P03, 25P04); and those of a refused connection: role (28), no
 * such database (3D), a database that accepts no connections (55000).
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const UNAVAILABLE_STATE = /^(08|28|3D|53|57|58|25006|25P03|25P04|55000)/;

/** Returns what a statement is refused with: StatementFailed, or Refusal DATABASE_UNAVAILABLE. */
export function classify(error: unknown): Error {
  const cause = error instanceof Error ? error : new Error(String(error));
  const sqlState = sqlStateOf(cause);
  if (sqlState !== undefined && !UNAVAILABLE_STATE.test(sqlState))
    return new StatementFailed(sqlState, cause);
  return unavailable(cause);
}

/** Returns the refusal of a statement that Postgres did not answer, or could not commit. */
export function unavailable(cause: unknown): Refusal {
  return new Refusal("DATABASE_UNAVAILABLE", "The database could not be reached or did not answer in time.", {
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}

/**
 * To be called before a statement that was refused is sent again.
 *
 * @param sentAtMs when it was first sent, in milliseconds of `performance.now()`.
 * @throws Refusal DATABASE_UNAVAILABLE after RESEND_WITHIN_MS.
 */
export function requireTimeToResend(sentAtMs: number, cause: unknown): void {
  if (performance.now() - sentAtMs > RESEND_WITHIN_MS) throw unavailable(cause);
}

/** Postgres answers, although the call gets DATABASE_UNAVAILABLE: a statement, a transaction or a session took too long. */
const TOO_SLOW_STATE = /^(57014|57P05|25P03|25P04)$/;
/** The message of pg-pool if all connections stayed busy for ACQUIRE_TIMEOUT_MS: they may be busy with locks. */
const ALL_BUSY = "timeout exceeded when trying to connect";

/** Class of errors of connections: Postgres answers, but the node of Citus that it asked does not. */
const UNREACHABLE_NODE_STATE = /^08/;

/** Returns whether an error means that Postgres did not answer, or accepts no statements now. */
export function isUnreachable(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  if (sqlState !== undefined)
    return (
      !TOO_SLOW_STATE.test(sqlState) &&
      !UNREACHABLE_NODE_STATE.test(sqlState) &&
      UNAVAILABLE_STATE.test(sqlState)
    );
  return !(error instanceof Error && error.message === ALL_BUSY);
}

/** What Citus says, with the state of an internal error, if it loses a node within a transaction or in its commit. */
const NODE_LOST = /^(failure on connection marked as essential|could not commit transaction for shard)/;
const CONNECTION_FAILURE = "08006";

/** In the message of a round trip that ends because of its age, which the pool makes Postgres refuse as a number. */
export const TOOK_TOO_LONG = "the statements of a round trip took too long";
const QUERY_CANCELED = "57014";

/** Returns the SQLSTATE with which Postgres refused a statement. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  if (error.message.includes(TOOK_TOO_LONG)) return QUERY_CANCELED;
  return NODE_LOST.test(error.message) ? CONNECTION_FAILURE : error.code;
}
