import { ClaimAbandoned } from "../run/claim.ts";
import type { Handled, Handling } from "./guard.ts";

/**
 * Waits for a handler's response, for at most `afterMs` once its client has disconnected: otherwise a handler that
 * never answers would hold its claim forever.
 *
 * Rejects with the handler's error, and with ClaimAbandoned after that time.
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
      // A process with nothing else to do has no handler to wait for. (In browsers timers are numbers without `unref`.)
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
