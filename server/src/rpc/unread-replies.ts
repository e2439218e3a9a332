import type { ServerHttp2Stream } from "node:http2";

/** What a connection has been answered, and has not taken yet. */
export interface UnreadReplies {
  /** Whether it is so much that nothing is to be added. */
  isFull(): boolean;
  /** Counts an answer until its stream is over, which it is once the system has all of it. */
  add(stream: ServerHttp2Stream, bytes: number): void;
  /** Writes one of a stream's many answers, and counts it until the system has it, or the stream is over. */
  write(stream: ServerHttp2Stream, answer: Buffer): void;
}

/**
 * HTTP/2 bounds what a peer may send, not what it leaves to lie: one that opens its windows and reads nothing has all its
 * answers kept for it, of up to 4 MiB each and from thousands of streams.
 *
 * @param maxBytes per connection; the answer with which it gets there may go beyond.
 */
export function createUnreadReplies(maxBytes: number): UnreadReplies {
  let unreadBytes = 0;
  return {
    isFull: () => unreadBytes >= maxBytes,
    add(stream, bytes) {
      unreadBytes += bytes;
      stream.once("close", () => {
        unreadBytes -= bytes;
      });
    },
    write(stream, answer) {
      unreadBytes += answer.byteLength;
      stream.write(answer, () => {
        unreadBytes -= answer.byteLength;
      });
    },
  };
}
