import { Refusal } from "../../core/domain/refusal.ts";
import type { AdministrationPool } from "../../core/store/batching/administration-pool.ts";
import type { Connection, Runner } from "../../core/store/pool.ts";
import { StatementFailed } from "../../core/store/statement-errors.ts";
import { activeCalls, type CallSpan, type Tracing } from "../../core/telemetry/tracing.ts";

/**
 * Wraps a pool, or another object that runs statements: each statement that is run for calls is a span of theirs. The time of a
 * span includes the wait for a connection.
 */
export function tracePool<Statements extends Connection>(pool: Statements, tracing: Tracing): Statements {
  return {
    ...pool,
    run: tracedRun(pool, tracing),
    transaction(work) {
      // A queue before the pool may call `work` on behalf of another call.
      const calls = activeCalls.getStore();
      return pool.transaction((transaction) => work({ run: tracedRun(transaction, tracing, calls) }));
    },
  };
}

/** Wraps the pool for administrative calls. Background tasks run for no call. */
export function traceAdministrationPool(pool: AdministrationPool, tracing: Tracing): AdministrationPool {
  return { ...tracePool(pool, tracing), of: (call) => tracePool(pool.of(call), tracing) };
}

function tracedRun(runner: Runner, tracing: Tracing, calls?: readonly CallSpan[]): Runner["run"] {
  return async (statement, parameters, operations = 1) => {
    const span = tracing.startStatement(statement.name, operations, calls ?? activeCalls.getStore());
    if (span === undefined) return await runner.run(statement, parameters, operations);
    try {
      const rows = await runner.run<never>(statement, parameters, operations);
      span.end();
      return rows;
    } catch (error) {
      span.end(describe(error));
      throw error;
    }
  };
}

function describe(error: unknown): { readonly type: string; readonly sqlState?: string } {
  if (error instanceof StatementFailed) return { type: error.sqlState, sqlState: error.sqlState };
  return { type: error instanceof Refusal ? error.reason : "_OTHER" };
}
