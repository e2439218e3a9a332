import { TerminalError } from "../errors/errors.ts";

/**
 * Thrown by the function of a run, a tool or an HTTP handler that can't know whether it had its effect, such as one whose connection
 * to a provider broke; also as the `cause` of another error. The claim is not released: its lease expires, and then the namespace's
 * policy decides. Under HOLD the operation becomes ambiguous, under RECLAIM it runs again. Any other error means that there was no
 * effect.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = "OutcomeUnknownError";
}

/** More than programs nest; a chain of causes may be a circle. */
const MAX_CAUSES = 20;

/**
 * Returns whether an error is an OutcomeUnknownError, or was caused by one. A TerminalError that was caused by one is the program's own
 * judgement.
 */
export function isOutcomeUnknown(error: unknown): boolean {
  let each = error;
  for (let causes = 0; causes <= MAX_CAUSES; causes++) {
    if (each instanceof OutcomeUnknownError) return true;
    if (typeof each !== "object" || each === null || each instanceof TerminalError) return false;
    each = Reflect.get(each, "cause");
  }
  return false;
}
