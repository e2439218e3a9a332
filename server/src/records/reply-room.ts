import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { Refusal } from "../domain/refusal.ts";
import type { LiveRecord } from "./record.ts";
import { resultBytes } from "./result-bytes.ts";

/** Counts the bytes of a call's results, which share one reply message. */
export type ReplyRoom = ReturnType<typeof createReplyRoom>;

/** Returns the room of an empty message. */
export function createReplyRoom() {
  let bytesLeft = MAX_MESSAGE_BYTES;
  return {
    /** Takes bytes. Returns false, and takes none, if fewer are left. */
    take(bytes: number): boolean {
      if (bytes > bytesLeft) return false;
      bytesLeft -= bytes;
      return true;
    },
  };
}

/**
 * Returns the size of a record's parts that have no small limit: its checkpoint, and its result as far as it
 * was read.
 */
export function unboundedBytes({ phase, checkpoint }: LiveRecord): number {
  const checkpointBytes = checkpoint?.state.byteLength ?? 0;
  if (phase.kind !== "completed" || phase.result === undefined) return checkpointBytes;
  return checkpointBytes + resultBytes(phase.result);
}

/** Returns the refusal of a batch's item whose reply does not fit beside the other items'. */
export function replyTooLarge(): Refusal {
  return new Refusal(
    "RESPONSE_TOO_LARGE",
    "The item's reply does not fit into the batch's; ask for it alone.",
  );
}
