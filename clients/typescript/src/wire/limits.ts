/** The limits that the client checks before it sends a request, to name the mistake. */
export * from "../gen/limits.ts";

/** The range of a google.protobuf.Timestamp, in milliseconds since 1970. */
export const MIN_TIME_MS = Date.parse("0001-01-01T00:00:00Z");
export const MAX_TIME_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** The longest delay of a timer, 24 days: JavaScript keeps it in 32 bits, and a longer one ends at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
