import { setTimeout as pause } from "node:timers/promises";

// Starting takes about 100 ms, so a finer step would only burn the CPU that the server needs to start.
const STEP_MS = 20;

/**
 * Polls until `condition` holds. Returns true as soon as it holds, false after `timeoutMs`; the caller throws
 * the error.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() >= giveUpAt) return false;
    await pause(STEP_MS);
  }
  return true;
}
