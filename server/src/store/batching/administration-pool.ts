import type { Deadline } from "../../domain/deadline.ts";
import type { Principal } from "../../domain/tenant.ts";
import type { Pool } from "../pool.ts";
import { createTurns } from "./turns.ts";

/** Where statements and transactions run. */
export type Statements = Pick<Pool, "run" | "transaction">;

/**
 * Connections for administration and for background work on many rows, apart from those of claims: neither scans nor
 * locks of theirs keep a claim from a connection. Tenants take turns, a statement or a transaction at a time.
 *
 * What is run on the pool itself is the operators'.
 */
export interface AdministrationPool extends Pool {
  /** Runs what a call needs, in its tenant's turns and until its deadline; else throws as `Turns`. */
  of(call: Deadline & { readonly principal: Principal }): Statements;
  /** Runs what a background task needs, in turns of its own. */
  forTask(task: BackgroundTask): Statements;
}

/** How many of the pool's connections there are: two for all scans of a replica, so that claims have the processors. */
export const ADMINISTRATION_CONNECTIONS = 2;

/** Lanes beside those of the tenants, which are numbered from 1. */
const OPERATORS = 0;
const TASKS = { jobs: -1, counts: -2, pruning: -3 } as const;
export type BackgroundTask = keyof typeof TASKS;

const WHENEVER: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** Puts turns before a pool of ADMINISTRATION_CONNECTIONS; closing closes the pool. */
export function createAdministrationPool(pool: Pool): AdministrationPool {
  const turns = createTurns({ width: ADMINISTRATION_CONNECTIONS });

  function inLane(lane: number, deadline: Deadline): Statements {
    return {
      run: (statement, parameters, operations) =>
        turns.take(lane, deadline, () => pool.run(statement, parameters, operations)),
      transaction: (work) => turns.take(lane, deadline, () => pool.transaction(work)),
    };
  }

  return {
    ...inLane(OPERATORS, WHENEVER),
    of: (call) => inLane(call.principal.role === "OPERATOR" ? OPERATORS : call.principal.tenant.id, call),
    forTask: (task) => inLane(TASKS[task], WHENEVER),
    load: () => ({ ...pool.load(), waiting: turns.waiting }),
    close: pool.close,
  };
}
