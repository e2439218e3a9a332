import { OncewardError, TerminalError } from "../errors/errors.ts";

/**
 * Thrown by the function of a run, a tool or an HTTP handler that can't know whether it had its effect, such as one whose connection
 * to a provider broke; also as the `cause` of another error. The claim is not released: its lease expires, and then the namespace's
 * policy decides. Under HOLD the operation becomes ambiguous, under RECLAIM it runs again.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = "OutcomeUnknownError";
}

/**
 * Thrown by the function of a run, a tool or an HTTP handler that certainly had no effect; also as the `cause` of another error. The
 * claim is released, so that the next delivery runs at once: also if the function was interrupted, and under `onError: "unknown"`.
 */
export class NoEffectError extends Error {
  override readonly name: string = "NoEffectError";
}

/** More than programs nest; a chain of causes may be a circle. */
const MAX_CAUSES = 20;

/** Returns an error and its causes, the outermost first. A TerminalError is the last: it is the program's judgement of its causes. */
function chainOf(error: unknown): readonly unknown[] {
  const chain = [error];
  let each = error;
  while (typeof each === "object" && each !== null && !(each instanceof TerminalError)) {
    each = Reflect.get(each, "cause");
    if (each === undefined || chain.length > MAX_CAUSES) break;
    chain.push(each);
  }
  return chain;
}

/** Returns what the function itself says of its effect, by its error or the first cause that says it; undefined if none does. */
export function ownWordOf(error: unknown): OutcomeUnknownError | NoEffectError | undefined {
  return chainOf(error).find(
    (each) => each instanceof OutcomeUnknownError || each instanceof NoEffectError,
  ) as ReturnType<typeof ownWordOf>;
}

/** Returns whether the function says that its outcome is unknown. */
export function isOutcomeUnknown(error: unknown): boolean {
  return ownWordOf(error) instanceof OutcomeUnknownError;
}

/** The names of errors of an aborted signal, and of a time limit of the caller's; a ConnectTimeoutError comes before the request. */
const INTERRUPTION = /^(AbortError|CanceledError|(?!ConnectTimeoutError)\w*TimeoutError)$/;

/** The codes of a time limit, of Node and of HTTP clients that keep them, such as axios. */
const TIMED_OUT: ReadonlySet<unknown> = new Set(["ECONNABORTED", "ESOCKETTIMEDOUT", "ETIMEDOUT"]);
/** CANCELLED and DEADLINE_EXCEEDED, which errors of gRPC and Connect have beside their metadata. */
const CUT: ReadonlySet<unknown> = new Set([1, 4]);

/**
 * Returns whether an error is, or was caused by, an interruption of the client's own: what an aborted signal, `AbortSignal.timeout`, or
 * the time limit of an HTTP or gRPC client makes a call throw. The request may have reached the provider.
 */
export function isInterruption(error: unknown): boolean {
  for (const each of chainOf(error)) {
    // Of a nested run: what it waited for is the service.
    if (each instanceof OncewardError) return false;
    if (typeof each === "object" && each !== null && wasCut(each)) return true;
  }
  return false;
}

function wasCut(error: {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
}): boolean {
  // Before the request was sent.
  if (error.syscall === "connect") return false;
  const names = [error.name, error.constructor?.name];
  const isNamed = names.some((name) => typeof name === "string" && INTERRUPTION.test(name));
  return isNamed || TIMED_OUT.has(error.code) || ("metadata" in error && CUT.has(error.code));
}
