import { MAX_MESSAGE_BYTES } from "./limits.ts";
import type { LiveRecord } from "./record.ts";
import { Refusal } from "./refusal.ts";

/** Counts what the results of one call take of its reply, which is one message. */
export interface ReplyRoom {
  /** Takes so many bytes, if they are left. */
  take(bytes: number): boolean;
}

/** Returns the room of a whole message. */
export function createReplyRoom(): ReplyRoom {
  let bytesLeft = MAX_MESSAGE_BYTES;
  return {
    take(bytes) {
      if (bytes > bytesLeft) return false;
      bytesLeft -= bytes;
      return true;
    },
  };
}

/** Returns how many bytes of a record have no small bound: its checkpoint, and its result as far as it came along. */
export function unboundedBytes({ phase, checkpoint }: LiveRecord): number {
  const checkpointBytes = checkpoint?.state.byteLength ?? 0;
  if (phase.kind !== "completed" || phase.result === undefined) return checkpointBytes;
  let bytes = checkpointBytes + phase.result.payload.byteLength;
  for (const [name, value] of Object.entries(phase.result.metadata)) bytes += name.length + value.length;
  return bytes;
}

/** Returns the refusal of an item of a batch whose reply holds others already. */
export function replyTooLarge(): Refusal {
  return new Refusal(
    "RESPONSE_TOO_LARGE",
    "The item's reply does not fit into the batch's; ask for it alone.",
  );
}
