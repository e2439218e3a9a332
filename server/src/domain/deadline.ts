/**
 * A call's deadline. It is polled instead of awaited: code checks it before it spends resources on the call,
 * so that a late timer (a stalled event loop) cannot let an expired call through.
 */
export interface Deadline {
  /** When the deadline passes, in milliseconds of `performance.now()`. */
  readonly atMs: number;
  /** Whether the caller has cancelled the call. */
  readonly cancelled: boolean;
}

/** Returns whether the caller no longer waits: it has cancelled, or the deadline has passed. */
export function isExpired(deadline: Deadline): boolean {
  return deadline.cancelled || performance.now() >= deadline.atMs;
}
