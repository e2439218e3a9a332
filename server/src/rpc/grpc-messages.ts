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
    const messageBytes = head.readUInt32BE(1);
    if (messageBytes > maxBytes) {
      const description = `Received message larger than max (${messageBytes} vs ${maxBytes})`;
      throw new MessageRefused(Code.ResourceExhausted, description);
    }
    wantedBytes = HEAD_BYTES + messageBytes;
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

/** A message as it is sent. Answers are not compressed. */
export function frameMessage(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.byteLength);
  frame.writeUInt8(0);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}
