import { setTimeout as delay } from "node:timers/promises";

const LIMIT_MS = 60_000;
const INTERVAL_MS = 25;

/** Waits until a condition holds. @throws Error if it does not within a minute; the reason of `signal`. */
export async function untilTrue(condition: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const giveUpAtMs = performance.now() + LIMIT_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs)
      throw new Error("the server did not count the claims within a minute");
    await delay(INTERVAL_MS, undefined, { signal });
  }
}
