import { Code } from "@connectrpc/connect";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { createByteCollector } from "./byte-collector.ts";
import { tooLarge } from "./malformed.ts";

/**
 * Messages of a stream up to this size are read, so that one that is over the contract's limit is told so under its id; a
 * larger one ends the stream (RESOURCE_EXHAUSTED), before it is read.
 */
export const MAX_READ_BYTES = 2 * MAX_MESSAGE_BYTES;

/** Why no call could be made of what came: the transport's own errors, which have no details. */
export class MessageRefused extends Error {
  override readonly name = "MessageRefused";
  readonly code: Code;
  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
  }
}

/** Puts the one message of a unary call together. */
export interface MessageReader {
  /**
   * @throws Refusal INVALID_REQUEST as soon as it is known to be too long.
   * @throws MessageRefused for flags that don't exist, and for a second message.
   */
  push(chunk: Uint8Array): void;
  /** How large it is with its head; undefined if that is not known yet, or all of it is there. */
  readonly wantedBytes: number | undefined;
  /** @throws MessageRefused if there is none, or not all of it. */
  end(): { readonly message: Buffer; readonly compressed: boolean };
}

/** A flag that tells whether it is compressed, and its length. */
const HEAD_BYTES = 5;
/** The only flag there is. */
const COMPRESSED = 1;

const EMPTY = Buffer.alloc(0);

/** @see MessageReader */
export function createMessageReader(maxBytes: number): MessageReader {
  const collected = createByteCollector();
  /** With its head; undefined until that is there. */
  let wantedBytes: number | undefined;

  function readHead(): number {
    const head = collected.view();
    const flags = head.readUInt8();
    if (flags > COMPRESSED)
      throw new MessageRefused(Code.InvalidArgument, `Received a message with the unknown flags ${flags}`);
    const messageBytes = head.readUInt32BE(1);
    if (messageBytes > maxBytes) throw tooLarge(maxBytes, messageBytes);
    return HEAD_BYTES + messageBytes;
  }

  return {
    push(chunk) {
      if (wantedBytes !== undefined && collected.byteLength + chunk.byteLength > wantedBytes)
        throw secondMessage();
      collected.push(chunk);
      if (wantedBytes !== undefined || collected.byteLength < HEAD_BYTES) return;
      wantedBytes = readHead();
      if (collected.byteLength > wantedBytes) throw secondMessage();
    },
    get wantedBytes() {
      return collected.byteLength === wantedBytes ? undefined : wantedBytes;
    },
    end() {
      if (collected.byteLength !== wantedBytes) {
        throw new MessageRefused(Code.Unimplemented, "Received no request message for a unary method");
      }
      const whole = collected.view();
      return { message: whole.subarray(HEAD_BYTES), compressed: whole[0] === COMPRESSED };
    },
  };
}

function secondMessage(): MessageRefused {
  return new MessageRefused(Code.Unimplemented, "Received a second request message for a unary method");
}

/** Takes the messages of a stream out of what comes of it piece by piece. */
export interface MessageSplitter {
  push(chunk: Buffer): void;
  /**
   * The next message, if all of it is there: a view of what was pushed.
   *
   * @throws MessageRefused as soon as it is known to be too long, or compressed.
   */
  next(): Buffer | undefined;
  /** Whether there is part of a message. */
  isAmidst(): boolean;
  /** How large the message is, with its head, of which there is part; undefined if that is not known yet. */
  wantedBytes(): number | undefined;
}

/** @see MessageSplitter */
export function createMessageSplitter(maxBytes: number): MessageSplitter {
  let collected = createByteCollector();
  /** Of the next message, without its head; undefined until that is there. */
  let messageBytes: number | undefined;

  return {
    push: (chunk) => collected.push(chunk),
    next() {
      if (collected.byteLength < HEAD_BYTES) return undefined;
      const come = collected.view();
      messageBytes ??= readHead(come, maxBytes);
      const end = HEAD_BYTES + messageBytes;
      if (come.byteLength < end) return undefined;
      collected = createByteCollector(come.subarray(end));
      messageBytes = undefined;
      return come.subarray(HEAD_BYTES, end);
    },
    isAmidst: () => collected.byteLength > 0,
    wantedBytes: () => (messageBytes === undefined ? undefined : HEAD_BYTES + messageBytes),
  };
}

/** @throws MessageRefused */
function readHead(head: Buffer, maxBytes: number): number {
  if (head[0] !== 0)
    throw new MessageRefused(Code.Unimplemented, "Messages of a stream can't be compressed.");
  const messageBytes = head.readUInt32BE(1);
  if (messageBytes <= maxBytes) return messageBytes;
  const description = `Received message larger than max (${messageBytes} vs ${maxBytes})`;
  throw new MessageRefused(Code.ResourceExhausted, description);
}

/** A message, and what is to stand behind it, as it is sent. Answers are not compressed. */
export function frameMessage(message: Uint8Array, tail: Uint8Array = EMPTY): Buffer {
  const messageBytes = message.byteLength + tail.byteLength;
  const frame = Buffer.allocUnsafe(HEAD_BYTES + messageBytes);
  frame.writeUInt8(0);
  frame.writeUInt32BE(messageBytes, 1);
  frame.set(message, HEAD_BYTES);
  frame.set(tail, HEAD_BYTES + message.byteLength);
  return frame;
}
