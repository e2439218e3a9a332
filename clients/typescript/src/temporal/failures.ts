import { ApplicationFailure } from "@temporalio/common";
import { CompletionError, isAbout, OncewardError, TerminalError } from "../errors/errors.ts";
import { classOf, isUnavailable } from "../errors/mapping.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import type { Claim, RunningClaim } from "../run/claim.ts";
import { OutcomeUnknownError, ownWordOf } from "../run/outcome-unknown.ts";

/**
 * Runs an activity. @throws a TerminalError, which is stored, for an ApplicationFailure that ends the activity regardless of its
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
export function settle(error: unknown, claim: (Claim & Partial<RunningClaim>) | undefined): unknown {
  const said = claim?.unknownBecause ?? ownWordOf(error);
  // Temporal must not end, and a workflow not compensate, what may have happened.
  if (said instanceof OutcomeUnknownError && (error instanceof TerminalError || isNonRetryable(error)))
    throw said;
  if (error instanceof TerminalError) throw terminalFailure(error);
  if (claim !== undefined) {
    if (!(error instanceof CompletionError && isAbout(error, claim))) throw error;
    if (error.effect.status === "fulfilled") return error.effect.value;
    return settle(error.effect.reason, claim);
  }
  if (!(error instanceof OncewardError)) throw error;
  const { message, retryDelayMs } = error;
  const nonRetryable = FINAL.has(classOf(error));
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

/** No retry can help. */
const FINAL: ReadonlySet<ReasonClass> = new Set([ReasonClass.GONE, ReasonClass.REUSED, ReasonClass.TOO_OLD]);

function typeOf(error: OncewardError): string {
  switch (classOf(error)) {
    case ReasonClass.WAIT:
      return "OncewardInProgress";
    case ReasonClass.ASK:
      return "OncewardAmbiguous";
    case ReasonClass.GONE:
      return "OncewardResultUnavailable";
    case ReasonClass.REUSED:
      return "OncewardFingerprintMismatch";
    case ReasonClass.TOO_OLD:
      return "OncewardTooOld";
    default:
      return isUnavailable(error) ? "OncewardUnavailable" : "OncewardError";
  }
}
