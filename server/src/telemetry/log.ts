import { type DestinationStream, type Logger, pino } from "pino";

/** Levels that `ONCEWARD_LOG_LEVEL` takes. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * JSON lines. Nothing that a tenant sent is ever given to it: no key, no result, no credential; errors of the database
 * are logged without the detail in which Postgres quotes values, and without their message where that may quote one.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err } },
    destination,
  );
}

/**
 * SQLSTATE classes whose messages quote the value that they are about, such as `invalid input syntax`: data exception
 * (22), and what a trigger or function raises (P0).
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
