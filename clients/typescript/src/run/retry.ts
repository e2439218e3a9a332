import { errorFromCall, isRetryable } from "../errors/mapping.ts";
import { sleep } from "./sleep.ts";

/** Long enough for a dropped connection to be opened again. */
const FIRST_DELAY_MS = 50;
/** Short enough to notice soon that a restart is over. */
const MAX_DELAY_MS = 2000;

/**
 * Makes a call that is safe to repeat (the same claim id, the same fencing token) until it is answered, with growing,
 * jittered delays, and no sooner than the service asked for.
 *
 * @param giveUpAtMs on the clock of `performance.now()`; no attempt begins after it.
 * @param signal ends the delays; no attempt begins after it aborts.
 * @throws OncewardError: the last one, once it is not worth retrying or the time is over; the signal's reason.
 */
export async function retrying<T>(
  attempt: () => Promise<T>,
  giveUpAtMs: number,
  signal?: AbortSignal,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt();
    } catch (cause) {
      const error = errorFromCall(cause);
      const delayMs = retryDelayMs(failures, error.retryDelayMs ?? 0);
      if (!isRetryable(error) || performance.now() + delayMs > giveUpAtMs) throw error;
      await sleep(delayMs, signal);
    }
  }
}

/** Between half and the whole of a doubling delay, so that callers who failed together don't come back together. */
function retryDelayMs(failures: number, atLeastMs: number): number {
  const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures);
  return atLeastMs + delayMs * (0.5 + Math.random() / 2);
}
