/** A mistake in the command, the environment or the policy, which the user can correct. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `${error}`;
}
