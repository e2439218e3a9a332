/**
 * How long a call is worth working for. Read, not awaited: whoever is about to spend something on the call asks first,
 * so that a late timer (a stalled event loop) cannot let an expired call through.
 */
export interface Deadline {
  /** When the caller stops waiting, in milliseconds of `performance.now()`. */
  readonly atMs: number;
  /** Whether the caller has gone away already. */
  readonly cancelled: boolean;
}

/** Whether nobody is waiting for the call's answer any more. */
export function isOver(deadline: Deadline): boolean {
  return deadline.cancelled || performance.now() >= deadline.atMs;
}
