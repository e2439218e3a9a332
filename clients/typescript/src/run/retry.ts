import { errorFromCall, isRetryable } from "../errors/mapping.ts";

/** Long enough for a dropped connection to be opened again. */
const FIRST_DELAY_MS = 50;
/** Short enough to notice the end of a restart soon. */
const MAX_DELAY_MS = 2000;

/**
 * Repeats a call that is safe to repeat (the same claim id, the same fencing token) until it is answered, with growing,
 * jittered delays that are never shorter than the service asked for.
 *
 * @param giveUpAtMs on the clock of `performance.now()`; no attempt begins after it.
 * @param signal ends the delays; no attempt begins after it aborts.
 * @throws OncewardError: the last attempt's, if it is not worth a retry or the time is up; the signal's reason.
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

/** Between half and the whole of a doubling delay, so that callers that failed together don't retry together. */
function retryDelayMs(failures: number, atLeastMs: number): number {
  const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures);
  return atLeastMs + delayMs * (0.5 + Math.random() / 2);
}

/** Resolves after `delayMs`; rejects with the signal's reason as soon as the signal aborts. */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, delayMs);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}
