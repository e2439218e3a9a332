import type { Config } from "../config/config.ts";
import type { Connection, Pool, Runner } from "../database/pool.ts";
import { StatementFailed } from "../database/statement-errors.ts";
import { Refusal } from "../domain/refusal.ts";
import type { Waiters } from "../records/claim/waiters.ts";
import type { AdministrationPool } from "../records/engine/administration-pool.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import {
  activeCalls,
  type CallSpan,
  type OpenTracing,
  recordedCall,
  type Tracing,
  type TracingOptions,
} from "../telemetry/tracing.ts";
import { tracePipeline } from "./traced-pipeline.ts";

/**
 * Wraps a pool, or another object that runs statements: each statement that is run for calls is a span of theirs. The time of a
 * span includes the wait for a connection.
 */
function tracePool<Statements extends Connection>(pool: Statements, tracing: Tracing): Statements {
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
function traceAdministrationPool(pool: AdministrationPool, tracing: Tracing): AdministrationPool {
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

/**
 * Opens the tracing of a replica, and returns functions that wrap the replica's parts. Without `openTracing`, tracing is off and
 * they return the parts themselves.
 */
export function openTracedParts(
  openTracing: OpenTracing | undefined,
  config: Config,
  options: Omit<TracingOptions, "database">,
) {
  const tracing = openTracing?.({ ...options, database: databaseAttributes(config.DATABASE_URL) });
  const whileOn =
    <Part>(wrap: (part: Part, tracing: Tracing) => Part) =>
    (part: Part) =>
      tracing === undefined ? part : wrap(part, tracing);
  return {
    /** Undefined while tracing is off. */
    tracing,
    pipeline: whileOn(tracePipeline),
    pool: whileOn<Pool>(tracePool),
    administrationPool: whileOn(traceAdministrationPool),
    waiters: whileOn(traceWaiters),
    metrics: whileOn(traceCacheLookups),
  };
}

/** Returns host, port and name of the database, as far as its URL has them: without user and password. */
function databaseAttributes(databaseUrl: string): TracingOptions["database"] {
  // Without a host, as with `?host=/run/postgresql`, it is not a URL of the URL standard.
  const { hostname = "", port = "", pathname = "" } = URL.parse(databaseUrl) ?? {};
  return {
    ...(hostname !== "" && { "server.address": hostname }),
    ...(port !== "" && { "server.port": Number(port) }),
    ...(pathname.length > 1 && { "db.namespace": pathname.slice(1) }),
  };
}

/** The span of a waiting call has an event when each of its waits begins and ends. */
function traceWaiters(waiters: Waiters): Waiters {
  return {
    ...waiters,
    async wait(...parameters) {
      const call = recordedCall();
      call?.addEvent("onceward.wait.started");
      try {
        await waiters.wait(...parameters);
      } finally {
        call?.addEvent("onceward.wait.ended");
      }
    },
  };
}

/** The span of a call has an event for each of its lookups of cached completions. */
function traceCacheLookups(metrics: Metrics): Metrics {
  return {
    ...metrics,
    countCacheLookup(layer, result) {
      metrics.countCacheLookup(layer, result);
      recordedCall()?.addEvent("onceward.cache", {
        "onceward.cache.layer": layer,
        "onceward.cache.result": result,
      });
    },
  };
}
