/**
 * Postgres cancels a statement after this time. Shorter than the client's own limit, so that the error comes
 * from Postgres.
 */
export const STATEMENT_TIMEOUT_MS = 5000;
/** The client closes a connection that has not answered for this long. */
export const QUERY_TIMEOUT_MS = 6000;
/** Maximum wait for a connection. */
export const ACQUIRE_TIMEOUT_MS = 3000;
/**
 * Maximum time from the wait for a connection to the statement's answer, with what a connection needs before its
 * statement: new plans, and a check of the installation. Then the client closes the connection.
 */
export const USE_TIMEOUT_MS = ACQUIRE_TIMEOUT_MS + QUERY_TIMEOUT_MS;
/**
 * Maximum time from the wait for a connection to the last moment at which the statement may have an effect: Postgres
 * cancels one that was sent just before the client closed the connection.
 */
export const LAST_EFFECT_MS = USE_TIMEOUT_MS + STATEMENT_TIMEOUT_MS;

/**
 * A statement that a node refused is sent once more only within this time after it left the queue: it then has its last effect no
 * later than this after LAST_EFFECT_MS. Longer than a statement waits for a lock.
 */
export const RESEND_WITHIN_MS = 2000;

/**
 * Time from a change of a policy until no replica stores records by the old policy: a replica uses
 * the old policy for up to 10 s (`Principal.goodUntilMs`), and then a statement may still have an effect for
 * LAST_EFFECT_MS, or RESEND_WITHIN_MS longer if it is sent again. A second is margin: 27 s.
 */
export const POLICY_SETTLES_MS = 10_000 + LAST_EFFECT_MS + RESEND_WITHIN_MS + 1000;
