import { OncewardError } from "./errors.ts";

/**
 * Thrown by a guarded function that no longer waits for its effect, which may still happen: the claim is neither completed
 * nor released. Its lease runs out, and the namespace's policy decides.
 */
export class ClaimAbandoned extends OncewardError {
  constructor(message: string) {
    super("LEASE_LOST", message);
  }
}
