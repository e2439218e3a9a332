import { Code } from "@connectrpc/connect";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";

/**
 * Messages up to this size are read, so that one that is over the contract's limit is told so with all details; a larger
 * one is refused by the transport (RESOURCE_EXHAUSTED), before it is read.
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
  /** @throws MessageRefused as soon as it is known to be too long, or more than one. */
  push(chunk: Buffer): void;
  /** @throws MessageRefused if there is none, or not all of it. */
  end(): { readonly message: Buffer; readonly compressed: boolean };
}

/** A flag that tells whether it is compressed, and its length. */
const HEAD_BYTES = 5;

const EMPTY = Buffer.alloc(0);

/** @see MessageReader */
export function createMessageReader(maxBytes: number): MessageReader {
  const chunks: Buffer[] = [];
  let bytes = 0;
  /** With its head; undefined until that is there. */
  let wantedBytes: number | undefined;

  /** Copies what is there: what is read from a socket keeps all alive that was read with it, and a claim may wait. */
  function readHead(): void {
    const head = Buffer.concat(chunks, bytes);
    chunks.length = 0;
    chunks.push(head);
    wantedBytes = HEAD_BYTES + checkedLength(head.readUInt32BE(1), maxBytes);
  }

  return {
    push(chunk) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (wantedBytes === undefined && bytes >= HEAD_BYTES) readHead();
      if (wantedBytes !== undefined && bytes > wantedBytes) {
        throw new MessageRefused(Code.Unimplemented, "Received a second request message for a unary method");
      }
    },
    end() {
      if (bytes !== wantedBytes) {
        throw new MessageRefused(Code.Unimplemented, "Received no request message for a unary method");
      }
      const [first = EMPTY] = chunks;
      const whole = chunks.length === 1 ? first : Buffer.concat(chunks, bytes);
      return { message: whole.subarray(HEAD_BYTES), compressed: whole[0] === 1 };
    },
  };
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
}

/** @see MessageSplitter */
export function createMessageSplitter(maxBytes: number): MessageSplitter {
  let chunks: Buffer[] = [];
  let bytes = 0;
  /** Of the next message, without its head; undefined until that is there. */
  let messageBytes: number | undefined;

  function joined(): Buffer {
    const [first = EMPTY] = chunks;
    if (chunks.length <= 1) return first;
    const whole = Buffer.concat(chunks, bytes);
    chunks = [whole];
    return whole;
  }

  return {
    push(chunk) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
    },
    next() {
      if (bytes < HEAD_BYTES) return undefined;
      messageBytes ??= readHead(joined(), maxBytes);
      const end = HEAD_BYTES + messageBytes;
      if (bytes < end) return undefined;
      const whole = joined();
      chunks = bytes === end ? [] : [whole.subarray(end)];
      bytes -= end;
      messageBytes = undefined;
      return whole.subarray(HEAD_BYTES, end);
    },
    isAmidst: () => bytes > 0,
  };
}

function readHead(head: Buffer, maxBytes: number): number {
  if (head[0] !== 0)
    throw new MessageRefused(Code.Unimplemented, "Messages of a stream can't be compressed.");
  return checkedLength(head.readUInt32BE(1), maxBytes);
}

/** @throws MessageRefused */
function checkedLength(messageBytes: number, maxBytes: number): number {
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
