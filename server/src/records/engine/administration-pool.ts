import type { Pool } from "../../database/pool.ts";
import type { Deadline } from "../../domain/operation.ts";
import type { Principal } from "../../domain/tenant.ts";
import { createPacedQueue } from "./paced-queue.ts";

/** Runs statements and transactions. */
export type Statements = Pick<Pool, "run" | "transaction">;

/**
 * Connections for administrative calls and for background work on many rows, separate from those of claims:
 * neither their scans nor their locks keep a claim waiting for a connection. Tenants take turns, one
 * statement or transaction at a time.
 *
 * Operators' statements run on the pool itself.
 */
export type AdministrationPool = ReturnType<typeof createAdministrationPool>;

/** Connections of the pool: two for all scans of a replica, so that claims keep the processors. */
export const ADMINISTRATION_CONNECTIONS = 2;

/** Lanes that are not tenants'; those are numbered from 1. */
const OPERATORS = 0;
const TASKS = { jobs: -1, counts: -2, pruning: -3, encryption: -4 } as const;
export type BackgroundTask = keyof typeof TASKS;

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** Queues statements before a pool of ADMINISTRATION_CONNECTIONS. Closing it closes the pool. */
export function createAdministrationPool(pool: Pool) {
  const queue = createPacedQueue({ width: ADMINISTRATION_CONNECTIONS });

  function inLane(lane: number, deadline: Deadline): Statements {
    return {
      run: (statement, parameters, operations) =>
        queue.run(lane, deadline, () => pool.run(statement, parameters, operations)),
      transaction: (work) => queue.run(lane, deadline, () => pool.transaction(work)),
    };
  }

  return {
    ...inLane(OPERATORS, NO_DEADLINE),
    /**
     * Returns a runner for a call: in its tenant's turns, until its deadline. It throws as `run` of createPacedQueue
     * does.
     */
    of: (call: Deadline & { readonly principal: Principal }) =>
      inLane(call.principal.role === "OPERATOR" ? OPERATORS : call.principal.tenant.id, call),
    /** Returns a runner for a background task, which has its own turns. */
    forTask: (task: BackgroundTask) => inLane(TASKS[task], NO_DEADLINE),
    load: () => ({ ...pool.load(), waiting: queue.waiting }),
    close: pool.close,
  };
}
