import { Refusal } from "../domain/refusal.ts";

/** Replies that were given to a connection, and that its peer has not taken yet. */
export interface UnreadReplies {
  /**
   * Refuses a call before anything is done for it, if its reply would have to wait behind too many others.
   *
   * @throws Refusal OVERLOADED.
   */
  admit(): void;
  /** Whether there are so many that nothing is to be added. */
  isFull(): boolean;
  /** Counts a reply until its stream, or its response, is closed: then the system has all of it. */
  add(stream: Closing, bytes: number): void;
  /** Writes one of a stream's many replies, and counts it until the system has it, or the stream is over. */
  write(stream: Writing, reply: Buffer): void;
}

/** A stream of HTTP/2, or a response of HTTP/1.1. */
interface Closing {
  once(event: "close", listener: () => void): unknown;
}

interface Writing {
  write(reply: Buffer, callback: () => void): unknown;
}

/** What the connections of a process have unread together. */
export interface UnreadTotal {
  bytes: number;
  readonly maxBytes: number;
}

/** One connection of gRPC may have two thirds of it. */
const MAX_BYTES = 384 * 1024 * 1024;
/** A connection has this much in any case: one that reads is not refused because others don't. */
const OWN_BYTES = 256 * 1024;
const RETRY_AFTER_MS = 500;

/** The count of a process, which all its connections share. */
export function createUnreadTotal(maxBytes = MAX_BYTES): UnreadTotal {
  return { bytes: 0, maxBytes };
}

/**
 * HTTP bounds what a peer may send, not what it leaves unread: one that opens its windows and reads nothing has all its
 * replies kept for it, of up to 4 MiB each and from thousands of streams.
 *
 * @param maxBytes per connection; the reply with which it gets there may go beyond.
 * @param ownBytes what the connection may have however much the others have.
 */
export function createUnreadReplies(
  maxBytes: number,
  total: UnreadTotal,
  ownBytes = OWN_BYTES,
): UnreadReplies {
  let unreadBytes = 0;
  const isFull = () => unreadBytes >= maxBytes || (total.bytes >= total.maxBytes && unreadBytes >= ownBytes);

  function count(bytes: number): () => void {
    unreadBytes += bytes;
    total.bytes += bytes;
    return () => {
      unreadBytes -= bytes;
      total.bytes -= bytes;
    };
  }

  return {
    isFull,
    admit() {
      if (!isFull()) return;
      const message = "There are too many replies that were not read.";
      throw new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    },
    add: (stream, bytes) => void stream.once("close", count(bytes)),
    write: (stream, reply) => void stream.write(reply, count(reply.byteLength)),
  };
}
