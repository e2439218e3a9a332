import { TerminalError } from "../errors/errors.ts";
import { type Claim, ClaimAbandoned, type RunningClaim } from "./claim.ts";
import type { Judging } from "./judging.ts";
import { isInterruption, OutcomeUnknownError, ownWordOf } from "./outcome-unknown.ts";
import type { RunOptions } from "./run-options.ts";

/** How a claim ends whose function failed: with the error that is stored, released, or left to its lease and the policy. */
export type Judgement = TerminalError | "release" | "unknown";

/**
 * Judges the error of a claim's function. Only the function's own word says that there was no effect, or which: an interruption, by the
 * claim's signal or a timeout, shows nothing, because a provider may have the request. Other errors mean no effect, unless `onError`
 * says that they don't. Before a claim that marks when its effect begins has done so, there was none.
 */
export function judge(
  error: unknown,
  { signal, mayHaveBegun = true }: Pick<RunningClaim, "signal"> & Partial<RunningClaim>,
  { classifyError, onError = "release" }: Judging,
): Judgement {
  const unclear = mayHaveBegun ? "unknown" : "release";
  if (error instanceof TerminalError) return error;
  if (error instanceof ClaimAbandoned) return unclear;
  const word = ownWordOf(error);
  if (word !== undefined) return word instanceof OutcomeUnknownError ? unclear : "release";
  if (classifyError !== undefined && isTerminal(error, classifyError)) return terminalFrom(error);
  return signal.aborted || isInterruption(error) || onError === "unknown" ? unclear : "release";
}

/** Judges the error of a claim's function by the options of its run, as the run does. */
export function judgeUnder(claim: Claim & Partial<RunningClaim>, error: unknown): Judgement {
  return claim.unknownBecause === undefined ? judge(error, claim, claim.judging ?? {}) : "unknown";
}

/** A `classifyError` that throws has no judgement: the caller must see the function's own error. */
function isTerminal(error: unknown, classifyError: NonNullable<RunOptions["classifyError"]>): boolean {
  try {
    return classifyError(error) === "terminal";
  } catch {
    return false;
  }
}

/** Returns the TerminalError that is stored for an error of another class. */
export function terminalFrom(error: unknown): TerminalError {
  if (!(error instanceof Error)) return new TerminalError(`${error}`, undefined, { cause: error });
  const { name, message } = error;
  return new TerminalError(message, "details" in error ? error.details : undefined, { name, cause: error });
}
