import { type DestinationStream, type Logger, pino } from "pino";

/** Levels that `ONCEWARD_LOG_LEVEL` takes. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * JSON lines. Nothing that a tenant sent is ever given to it: no key, no result, no credential; errors of the database
 * are logged without the detail in which Postgres quotes values.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err } },
    destination,
  );
}

function err(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: "not an Error" };
  const { name, message, stack } = error;
  const code = (error as { readonly code?: unknown }).code;
  return {
    name,
    message,
    stack,
    ...(code !== undefined && { code }),
    ...(error.cause !== undefined && { cause: err(error.cause) }),
  };
}
