import { InProgressError, type OncewardError } from "../errors/errors.ts";

/**
 * Returns how long the lease of another holder lasts, in milliseconds, by this machine's clock; 0 for other errors. A wrong
 * clock changes when the message is delivered again, not what then runs.
 */
export function leaseLeftMs(error: OncewardError): number {
  return error instanceof InProgressError ? Math.max(0, error.leaseExpiresAt.getTime() - Date.now()) : 0;
}
