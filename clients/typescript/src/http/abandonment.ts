import { ClaimAbandoned } from "../run/claim.ts";
import type { Handled, Handling } from "./guard.ts";

/**
 * Waits for a handler's response, for at most `afterMs` once its client has left: the claim of a handler that never
 * answers would be held for ever.
 *
 * Rejects with what the handler rejects with, and with ClaimAbandoned when that time is over.
 */
export async function abandonAfter<Sent>(afterMs: number, handling: Handling<Sent>): Promise<Handled<Sent>> {
  const { disconnected } = handling;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onDisconnected = () => {};
  const abandoned = new Promise<never>((_, reject) => {
    onDisconnected = () => {
      timer = setTimeout(() => {
        reject(new ClaimAbandoned(`A handler has not answered for ${afterMs} ms after its client left.`));
        handling.abandon();
      }, afterMs);
      // A process with nothing else left to do has no handler to wait for. (Browsers' timers are numbers.)
      timer.unref?.();
    };
  });
  if (disconnected.aborted) onDisconnected();
  else disconnected.addEventListener("abort", onDisconnected);
  try {
    return await Promise.race([handling.handled, abandoned]);
  } finally {
    clearTimeout(timer);
    disconnected.removeEventListener("abort", onDisconnected);
  }
}
