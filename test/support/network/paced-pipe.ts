import type { Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** How bytes are forwarded: at once, one by one, or after a delay. */
export type Pace = "at once" | "byte by byte" | { readonly delayMs: number };

/** Returns a function that forwards bytes to a stream in their order, at the current pace. */
export function createPacedPipe(to: Writable, pace: () => Pace): (bytes: Buffer) => void {
  let inFlight = 0;
  let last: Promise<void> = Promise.resolve();

  async function deliver(bytes: Buffer, notBeforeMs: number): Promise<void> {
    const leftMs = notBeforeMs - performance.now();
    if (leftMs > 0) await pause(leftMs);
    let sent = 0;
    while (sent < bytes.length && pace() === "byte by byte") {
      // Each byte waits for the one before it, so that the kernel gets them one by one.
      await new Promise<unknown>((resolve) => to.write(bytes.subarray(sent, sent + 1), resolve));
      sent++;
      if (to.destroyed) return;
    }
    if (sent < bytes.length) to.write(bytes.subarray(sent));
  }

  return (bytes) => {
    const now = pace();
    if (now === "at once" && inFlight === 0) {
      to.write(bytes);
      return;
    }
    inFlight++;
    const notBeforeMs = typeof now === "object" ? performance.now() + now.delayMs : 0;
    last = last.then(() => deliver(bytes, notBeforeMs)).finally(() => inFlight--);
  };
}
