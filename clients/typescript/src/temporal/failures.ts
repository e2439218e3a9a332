import { ApplicationFailure } from "@temporalio/common";
import {
  AmbiguousError,
  CompletionError,
  InProgressError,
  isAbout,
  OncewardError,
  ResultUnavailableError,
  TerminalError,
} from "../errors/errors.ts";
import { isUnavailable } from "../errors/mapping.ts";
import type { Claim } from "../run/claim.ts";
import { ownWordOf } from "../run/outcome-unknown.ts";

/**
 * Runs an activity. @throws a TerminalError, which is stored, for an ApplicationFailure that ends the activity whatever its
 * retry policy, unless its cause says what became of the effect; else the activity's own error.
 */
export async function orTerminal(activity: () => Promise<unknown>): Promise<unknown> {
  try {
    return await activity();
  } catch (cause) {
    if (!isNonRetryable(cause) || ownWordOf(cause) !== undefined) throw cause;
    const { message, type, details } = cause;
    throw new TerminalError(message, details ?? undefined, { name: type ?? "ApplicationFailure", cause });
  }
}

function isNonRetryable(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure && error.nonRetryable === true;
}

/**
 * Settles an activity by the error of its run. Returns its value if only the storage failed.
 *
 * @param claim the activity's claim; undefined if its function did not run.
 * @throws the error by which Temporal retries or ends the activity.
 */
export function settle(error: unknown, claim: Claim | undefined): unknown {
  if (error instanceof TerminalError) throw terminalFailure(error);
  if (claim !== undefined) {
    if (!(error instanceof CompletionError && isAbout(error, claim))) throw error;
    if (error.effect.status === "fulfilled") return error.effect.value;
    return settle(error.effect.reason, claim);
  }
  if (!(error instanceof OncewardError)) throw error;
  const { message, retryDelayMs } = error;
  const nonRetryable =
    error.reason === "FINGERPRINT_MISMATCH" ||
    error.reason === "KEY_TOO_OLD" ||
    error instanceof ResultUnavailableError;
  throw ApplicationFailure.create({
    message,
    type: typeOf(error),
    nonRetryable,
    cause: error,
    ...(retryDelayMs !== undefined && !nonRetryable && { nextRetryDelay: retryDelayMs }),
  });
}

/** Returns the non-retryable failure of a stored failure. On the first attempt it may be the activity's own. */
function terminalFailure({ message, name, details, cause }: TerminalError): unknown {
  if (isNonRetryable(cause)) return cause;
  const values = Array.isArray(details) ? details : details === undefined ? [] : [details];
  return ApplicationFailure.create({ message, type: name, nonRetryable: true, details: values });
}

function typeOf(error: OncewardError): string {
  if (error instanceof InProgressError) return "OncewardInProgress";
  if (error instanceof AmbiguousError) return "OncewardAmbiguous";
  if (error instanceof ResultUnavailableError) return "OncewardResultUnavailable";
  if (error.reason === "FINGERPRINT_MISMATCH") return "OncewardFingerprintMismatch";
  if (error.reason === "KEY_TOO_OLD") return "OncewardKeyTooOld";
  return isUnavailable(error) ? "OncewardUnavailable" : "OncewardError";
}
