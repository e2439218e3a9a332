import type { Readable } from "node:stream";
import { Refusal } from "../domain/refusal.ts";

/**
 * Gives every piece of a request to `take`, and resolves when the last one has come. Until then nothing was read of it.
 *
 * After an error of `take`, with which it rejects, the rest is read and dropped, so that its sender gets to the answer.
 *
 * @throws Refusal CANCELLED if the caller goes away first.
 */
export function takeIn(request: Readable, take: (piece: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let refused = false;
    request.on("data", (piece: Buffer) => {
      if (refused) return;
      try {
        take(piece);
      } catch (error) {
        refused = true;
        reject(error);
      }
    });
    request.on("end", resolve);
    request.on("close", () => reject(new Refusal("CANCELLED", "The caller went away.")));
  });
}
