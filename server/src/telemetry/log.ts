import { type DestinationStream, type Logger, pino } from "pino";
import { traceFields } from "./tracing.ts";

/** Levels of `ONCEWARD_LOG_LEVEL`. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Creates a log of JSON lines. It never contains data of a tenant: no key, no result, no credential. Errors
 * of the database are logged without their detail, in which Postgres quotes values, and without their message
 * if that may quote one. While tracing is on, the lines of a call have its `trace_id` and `span_id`.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err }, mixin: traceFields },
    destination,
  );
}

/**
 * SQLSTATE classes whose messages can quote a value, such as `invalid input syntax`: data exception (22), and
 * errors that a trigger or function raises (P0).
 */
const QUOTING_STATE = /^(22|P0)...$/;
const UNQUOTED = "(not shown: it may quote a value)";

function err(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: "not an Error" };
  const { name, stack } = error;
  const code = (error as { readonly code?: unknown }).code;
  const quotes = typeof code === "string" && QUOTING_STATE.test(code);
  const message = quotes ? UNQUOTED : error.message;
  return {
    name,
    message,
    stack: quotes ? stack?.replace(error.message, () => message) : stack,
    ...(code !== undefined && { code }),
    ...(error.cause !== undefined && { cause: err(error.cause) }),
  };
}
