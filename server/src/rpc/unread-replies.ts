import type { ServerHttp2Stream } from "node:http2";

/** What a connection has been answered, and has not taken yet. */
export interface UnreadReplies {
  /** Counts an answer until its stream is over; false, and counts nothing, if that would be more than a connection may have. */
  admit(stream: ServerHttp2Stream, bytes: number): boolean;
}

/**
 * HTTP/2 bounds what a peer may send, not what it leaves to lie: one that opens its windows and reads nothing has all its
 * answers kept for it, of up to 4 MiB each and from thousands of streams.
 *
 * @param maxBytes per connection; an answer that is alone always has room.
 */
export function createUnreadReplies(maxBytes: number): UnreadReplies {
  let unreadBytes = 0;
  return {
    admit(stream, bytes) {
      if (unreadBytes > 0 && unreadBytes + bytes > maxBytes) return false;
      unreadBytes += bytes;
      stream.once("close", () => {
        unreadBytes -= bytes;
      });
      return true;
    },
  };
}
