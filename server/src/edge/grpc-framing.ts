import { Code } from "@connectrpc/connect";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { ProtocolError, tooLarge } from "./errors.ts";
import type { MessageAssembler } from "./inbound-budget.ts";

/**
 * The largest message that is read from a stream. Above the contract's limit, so that a message slightly over
 * that limit is refused under its id; a larger one ends the stream (RESOURCE_EXHAUSTED) before it is read.
 */
export const MAX_FRAMED_BYTES = 2 * MAX_MESSAGE_BYTES;

/**
 * Reads the one length-prefixed message of a unary call
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
 */
export interface MessageReader extends MessageAssembler {
  /**
   * @throws Refusal INVALID_REQUEST as soon as the message is known to be too long.
   * @throws ProtocolError for unknown flags and for a second message.
   */
  push(chunk: Uint8Array): void;
  /** @throws ProtocolError if the message is missing or incomplete. */
  end(): { readonly message: Buffer; readonly compressed: boolean };
}

/** The prefix of a message: a byte of flags, and the message's length. */
const PREFIX_BYTES = 5;
/** The only flag. */
const COMPRESSED = 1;

const EMPTY = Buffer.alloc(0);

/** @see MessageReader */
export function createMessageReader(maxBytes: number): MessageReader {
  const collected = createByteCollector();
  /** The message's length with its prefix; undefined until the prefix is there. */
  let frameBytes: number | undefined;

  function readPrefix(): number {
    const prefix = collected.view();
    const flags = prefix.readUInt8();
    if (flags > COMPRESSED)
      throw new ProtocolError(Code.InvalidArgument, `Received a message with the unknown flags ${flags}`);
    const messageBytes = prefix.readUInt32BE(1);
    if (messageBytes > maxBytes) throw tooLarge(maxBytes, messageBytes);
    return PREFIX_BYTES + messageBytes;
  }

  return {
    push(chunk) {
      if (frameBytes !== undefined && collected.byteLength + chunk.byteLength > frameBytes)
        throw secondMessage();
      collected.push(chunk);
      if (frameBytes !== undefined || collected.byteLength < PREFIX_BYTES) return;
      frameBytes = readPrefix();
      if (collected.byteLength > frameBytes) throw secondMessage();
    },
    get incompleteBytes() {
      return collected.byteLength === frameBytes ? undefined : frameBytes;
    },
    end() {
      if (collected.byteLength !== frameBytes) {
        throw new ProtocolError(Code.Unimplemented, "Received no request message for a unary method");
      }
      const whole = collected.view();
      return { message: whole.subarray(PREFIX_BYTES), compressed: whole[0] === COMPRESSED };
    },
  };
}

function secondMessage(): ProtocolError {
  return new ProtocolError(Code.Unimplemented, "Received a second request message for a unary method");
}

/** Splits the bytes of a stream into its length-prefixed messages. */
export interface MessageSplitter {
  push(chunk: Buffer): void;
  /**
   * Returns the next complete message, as a view of the pushed bytes; undefined if there is none.
   *
   * @throws ProtocolError as soon as the message is known to be too long, or compressed.
   */
  next(): Buffer | undefined;
  /** Whether a part of a message has arrived. */
  hasPartialMessage(): boolean;
  /** The length of the partial message with its prefix; undefined if it is not known yet. */
  partialMessageBytes(): number | undefined;
}

/** @see MessageSplitter */
export function createMessageSplitter(maxBytes: number): MessageSplitter {
  let collected = createByteCollector();
  /** The next message's length without its prefix; undefined until the prefix is there. */
  let messageBytes: number | undefined;

  return {
    push: (chunk) => collected.push(chunk),
    next() {
      if (collected.byteLength < PREFIX_BYTES) return undefined;
      const received = collected.view();
      messageBytes ??= readPrefix(received, maxBytes);
      const end = PREFIX_BYTES + messageBytes;
      if (received.byteLength < end) return undefined;
      collected = createByteCollector(received.subarray(end));
      messageBytes = undefined;
      return received.subarray(PREFIX_BYTES, end);
    },
    hasPartialMessage: () => collected.byteLength > 0,
    partialMessageBytes: () => (messageBytes === undefined ? undefined : PREFIX_BYTES + messageBytes),
  };
}

/** @throws ProtocolError */
function readPrefix(prefix: Buffer, maxBytes: number): number {
  if (prefix[0] !== 0)
    throw new ProtocolError(Code.Unimplemented, "Messages of a stream can't be compressed.");
  const messageBytes = prefix.readUInt32BE(1);
  if (messageBytes <= maxBytes) return messageBytes;
  const description = `Received message larger than max (${messageBytes} vs ${maxBytes})`;
  throw new ProtocolError(Code.ResourceExhausted, description);
}

/** Returns a message, followed by `tail`, with its prefix. Replies are not compressed. */
export function frameMessage(message: Uint8Array, tail: Uint8Array = EMPTY): Buffer {
  const messageBytes = message.byteLength + tail.byteLength;
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + messageBytes);
  frame.writeUInt8(0);
  frame.writeUInt32BE(messageBytes, 1);
  frame.set(message, PREFIX_BYTES);
  frame.set(tail, PREFIX_BYTES + message.byteLength);
  return frame;
}

/**
 * Joins the pieces of a message. It copies them: a piece keeps the whole buffer alive that was read from the
 * socket, and pieces of one byte each would take a hundred times their size.
 */
export interface ByteCollector {
  readonly byteLength: number;
  push(piece: Uint8Array): void;
  /** Returns a view of the bytes so far; later pieces do not change it. */
  view(): Buffer;
}

/**
 * @param start Bytes before the first piece; they are neither copied nor changed.
 * @see ByteCollector
 */
export function createByteCollector(start: Buffer = EMPTY): ByteCollector {
  let space = start;
  let byteLength = start.byteLength;
  return {
    get byteLength() {
      return byteLength;
    },
    push(piece) {
      const needed = byteLength + piece.byteLength;
      if (needed > space.byteLength) {
        // The exact size of the first piece, which is mostly the only one; then doubled, so that a byte is
        // copied once or twice.
        const grown = Buffer.allocUnsafeSlow(
          byteLength === 0 ? needed : Math.max(needed, 2 * space.byteLength),
        );
        space.copy(grown, 0, 0, byteLength);
        space = grown;
      }
      space.set(piece, byteLength);
      byteLength = needed;
    },
    view: () => space.subarray(0, byteLength),
  };
}
