/**
 * Thrown by the function of a run, a tool or a fetch-style handler that can't know whether it had its effect, such as one whose
 * connection to a provider broke. The claim is not released: its lease expires, and then the namespace's policy decides. Under HOLD
 * the operation becomes ambiguous, under RECLAIM it runs again. Any other error means that there was no effect.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = "OutcomeUnknownError";
}
