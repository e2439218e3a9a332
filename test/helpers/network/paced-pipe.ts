import type { Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** How bytes go on: at once, one by one, or this much later. */
export type Pace = "at once" | "byte by byte" | { readonly delayMs: number };

/** One direction of a connection, whose pace may change and whose order never does. */
export function createPacedPipe(to: Writable, pace: () => Pace): (bytes: Buffer) => void {
  let underWay = 0;
  let last: Promise<void> = Promise.resolve();

  async function deliver(bytes: Buffer, notBeforeMs: number): Promise<void> {
    const leftMs = notBeforeMs - performance.now();
    if (leftMs > 0) await pause(leftMs);
    let sent = 0;
    while (sent < bytes.length && pace() === "byte by byte") {
      // Each waits for the one before it, so that the kernel gets them one by one.
      await new Promise<unknown>((resolve) => to.write(bytes.subarray(sent, sent + 1), resolve));
      sent++;
      if (to.destroyed) return;
    }
    if (sent < bytes.length) to.write(bytes.subarray(sent));
  }

  return (bytes) => {
    const now = pace();
    if (now === "at once" && underWay === 0) {
      to.write(bytes);
      return;
    }
    underWay++;
    const notBeforeMs = typeof now === "object" ? performance.now() + now.delayMs : 0;
    last = last.then(() => deliver(bytes, notBeforeMs)).finally(() => underWay--);
  };
}
