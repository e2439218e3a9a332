/** Resolves after so many milliseconds; rejects with the signal's reason as soon as that aborts. */
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
