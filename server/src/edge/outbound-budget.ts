import { Refusal } from "../domain/refusal.ts";

/**
 * The memory of one connection for reply bytes that are not flushed to it yet, because its peer does not read
 * them.
 */
export interface OutboundBudget {
  /**
   * Refuses a call before it has an effect, if the budget is exhausted.
   *
   * @throws Refusal OVERLOADED.
   */
  admit(): void;
  /** Whether no further reply may be written. */
  isExhausted(): boolean;
  /**
   * Counts a reply until its HTTP/2 stream or HTTP/1.1 response closes: then the operating system has all of
   * it.
   */
  countUntilClosed(stream: Closing, bytes: number): void;
  /**
   * Writes one of a stream's many replies, and counts it until the operating system has it or the stream
   * ends.
   */
  write(stream: Writing, reply: Buffer): void;
}

interface Closing {
  once(event: "close", listener: () => void): unknown;
}

interface Writing {
  write(reply: Buffer, callback: () => void): unknown;
}

/** The unflushed reply bytes of all connections of a process. */
export interface OutboundTotal {
  bytes: number;
  readonly maxBytes: number;
}

/** One gRPC connection may use two thirds of it. */
const MAX_BYTES = 384 * 1024 * 1024;
/** A connection that reads is not refused because others don't. */
const RESERVED_BYTES = 256 * 1024;
const RETRY_AFTER_MS = 500;

/** Returns the total that the budgets of all connections share. */
export function createOutboundTotal(maxBytes = MAX_BYTES): OutboundTotal {
  return { bytes: 0, maxBytes };
}

/**
 * HTTP limits the bytes that a peer may send, not those that it leaves unread: without a budget, a peer that
 * opens its windows and reads nothing would have all its replies kept in memory, of up to 4 MiB each and for
 * thousands of streams.
 *
 * @param maxBytes The limit of the connection. The reply that reaches it may exceed it.
 * @param reservedBytes Bytes that the connection may use even when the total is exhausted.
 */
export function createOutboundBudget(
  maxBytes: number,
  total: OutboundTotal,
  reservedBytes = RESERVED_BYTES,
): OutboundBudget {
  let unflushedBytes = 0;
  const isExhausted = () =>
    unflushedBytes >= maxBytes || (total.bytes >= total.maxBytes && unflushedBytes >= reservedBytes);

  /** Returns a function that ends the count. */
  function count(bytes: number): () => void {
    unflushedBytes += bytes;
    total.bytes += bytes;
    return () => {
      unflushedBytes -= bytes;
      total.bytes -= bytes;
    };
  }

  return {
    isExhausted,
    admit() {
      if (!isExhausted()) return;
      const message = "There are too many replies that were not read.";
      throw new Refusal("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
    },
    countUntilClosed: (stream, bytes) => void stream.once("close", count(bytes)),
    write: (stream, reply) => void stream.write(reply, count(reply.byteLength)),
  };
}
