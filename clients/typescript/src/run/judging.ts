/** The options of a run by which its function's errors are judged. */
export interface Judging {
  /**
   * Classifies an error of the function: `release`, so that the next delivery runs the function again, or `terminal`,
   * so that the error is stored as a FAILURE. Then every delivery, the first one too, throws a TerminalError with the
   * error's `name`, `message` and `details`; on the first delivery its `cause` is the error itself. Not called for a
   * TerminalError, which is always terminal, nor for a NoEffectError or an OutcomeUnknownError. If it throws, it counts as `release`.
   * Default: `release`, or the client's.
   */
  readonly classifyError?: ((error: unknown) => "release" | "terminal") | undefined;
  /**
   * What an error of the function means that says nothing of its effect: `release`, there was none, and the next delivery runs at
   * once; or `unknown`, for money: the claim is left to its lease and the namespace's policy, and only a NoEffectError releases it.
   * An interruption is unknown with both: an error after `claim.signal` aborted, and the AbortError or TimeoutError of a signal.
   * Default: `release`, or the client's.
   */
  readonly onError?: "release" | "unknown" | undefined;
}
