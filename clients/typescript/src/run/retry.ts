import { errorFromCall, isToBeRepeated } from "../errors/mapping.ts";

/** Long enough for a dropped connection to be opened again. */
const FIRST_DELAY_MS = 50;
/** Short enough to notice the end of a restart soon. */
const MAX_DELAY_MS = 2000;

/**
 * Repeats a call that is safe to repeat (the same claim id, the same fencing token) until it is answered, with growing,
 * jittered delays that are never shorter than the service asked for.
 *
 * @param giveUpAtMs on the clock of `performance.now()`; no attempt begins after it.
 * @param signals end the delays; no attempt begins after one aborts. An attempt in flight is not ended.
 * @throws OncewardError: the last attempt's, if it is not worth a retry or the time is up; the reason of a signal.
 */
export const retrying = repeating(false);

/** As `retrying`, for a call of a claim that is held: see `isToBeRepeated`. */
export const retryingHeld = repeating(true);

function repeating(isHeld: boolean) {
  return async <T>(
    attempt: () => Promise<T>,
    giveUpAtMs: number,
    ...signals: readonly (AbortSignal | undefined)[]
  ): Promise<T> => {
    for (let failures = 0; ; failures++) {
      try {
        return await attempt();
      } catch (cause) {
        throwIfAborted(signals);
        const error = errorFromCall(cause);
        const delayMs = retryDelayMs(failures, error.retryDelayMs ?? 0);
        if (!isToBeRepeated(error, isHeld) || performance.now() + delayMs > giveUpAtMs) throw error;
        await sleep(delayMs, ...signals);
      }
    }
  };
}

/** Between half and the whole of a doubling delay, so that callers that failed together don't retry together. */
export function retryDelayMs(failures: number, atLeastMs: number): number {
  const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures);
  return atLeastMs + delayMs * (0.5 + Math.random() / 2);
}

/** Throws the reason of the first signal that has aborted. */
export function throwIfAborted(signals: readonly (AbortSignal | undefined)[]): void {
  for (const signal of signals) signal?.throwIfAborted();
}

/** Resolves after `delayMs`; rejects with the reason of a signal as soon as it aborts. */
export function sleep(delayMs: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", end);
      const aborted = signals.find((signal) => signal?.aborted);
      if (aborted === undefined) resolve();
      else reject(aborted.reason);
    };
    const timer = setTimeout(end, delayMs);
    for (const signal of signals) signal?.addEventListener("abort", end);
    if (signals.some((signal) => signal?.aborted)) end();
  });
}
