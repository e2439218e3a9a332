import type { Violation } from "../errors/errors.ts";
import { throwIfAny } from "../errors/violations.ts";
import type { Executor } from "./executor.ts";

/** Small enough that no lock is held for long. */
const DEFAULT_LIMIT = 1000;
const MAX_LIMIT = 10_000;

/** The options of a sweep. */
export interface SweepOptions {
  /**
   * The age from which rows are deleted, in milliseconds. A delivery that comes later runs again, so choose longer
   * than the longest retry or redrive of any queue, and longer than any holder of a claim may stall. It has no
   * default.
   */
  readonly olderThanMs: number;
  /** The largest number of rows per table, 1-10,000. Default: 1,000. */
  readonly limit?: number | undefined;
}

/** How many rows a sweep deleted. */
export interface SweepResult {
  readonly inbox: number;
  readonly completions: number;
}

/**
 * Deletes the oldest rows that are older than `olderThanMs`: of the inbox, and of the delivered completions. One call
 * deletes one bounded batch of each. Concurrent sweeps share the rows, and never wait for a handler in progress.
 *
 * ```ts
 * const limit = 1000;
 * const day = 24 * 3_600_000;
 * let swept: SweepResult;
 * do swept = await sweep(pgExecutor(pool), { olderThanMs: 30 * day, limit });
 * while (swept.inbox === limit || swept.completions === limit);
 * ```
 *
 * @param database a pool, not a transaction: each statement commits separately.
 * @throws InvalidRequestError; the driver's errors.
 */
export async function sweep(
  database: Executor,
  { olderThanMs, limit = DEFAULT_LIMIT }: SweepOptions,
): Promise<SweepResult> {
  const violations: Violation[] = [];
  checkWhole(violations, "olderThanMs", olderThanMs, Number.MAX_SAFE_INTEGER);
  checkWhole(violations, "limit", limit, MAX_LIMIT);
  throwIfAny(violations);
  const deleteOld = async (table: string, name: string, age: string) => {
    const deleted = await database(
      `with old as materialized (
         select ${name}, key
           from ${table}
          where ${age} < now() - $1::text::float8 * interval '1 millisecond'
          order by ${age}
          limit $2::text::int
            for update skip locked
       )
       delete from ${table} t using old
        where t.${name} = old.${name} and t.key = old.key
       returning t.key`,
      [String(olderThanMs), String(limit)],
    );
    return deleted.length;
  };
  return {
    inbox: await deleteOld("onceward_inbox", "consumer", "received_at"),
    completions: await deleteOld("onceward_completions", "namespace", "delivered_at"),
  };
}

function checkWhole(violations: Violation[], field: string, value: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return;
  violations.push({ field, description: `must be a whole number, 1-${max}` });
}
