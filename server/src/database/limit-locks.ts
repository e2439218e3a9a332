import type { Runner } from "./pool.ts";

/**
 * Half of a claim's lock timeout (`LOCK_TIMEOUT_MS` in pool.ts), so that one such statement never makes a
 * claim fail.
 */
const MAX_STATEMENT_MS = 500;
/** Below MAX_STATEMENT_MS, so that waiting for a lock fails with another error than a slow statement. */
const MAX_LOCK_WAIT_MS = 400;
/** A replica that stops between two statements keeps its locks no longer than a statement takes. */
const MAX_IDLE_MS = 500;

const limitLocksOfTransaction = {
  name: "limit_locks",
  text: `
select set_config('statement_timeout', $1::text, true), set_config('lock_timeout', $2::text, true),
       set_config('idle_in_transaction_session_timeout', $3::text, true)`,
};

/**
 * Limits how long each later statement of a transaction may run and may wait for a lock. For background work
 * on rows of records, because claims wait for its locks. On Citus the settings stay on the coordinator; its limit of a
 * statement ends what the statement waits for on workers, too.
 */
export async function limitLocks(transaction: Runner): Promise<void> {
  await transaction.run(
    limitLocksOfTransaction,
    [MAX_STATEMENT_MS, MAX_LOCK_WAIT_MS, MAX_IDLE_MS].map((ms) => `${ms}ms`),
  );
}
