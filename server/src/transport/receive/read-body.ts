import type { Readable } from "node:stream";
import { Code } from "@connectrpc/connect";
import { Refusal } from "../../domain/refusal.ts";
import type { Principal } from "../../domain/tenant.ts";
import type { ConnectionInboundBudget, Release } from "../bounds/memory-budgets.ts";
import { ProtocolError, tooLarge } from "../errors.ts";

/** Assembles a message from the pieces of a request's body. */
export interface MessageAssembler {
  /** Adds a piece, or throws an error that refuses the message. */
  push(piece: Buffer): void;
  /**
   * The size of the whole message, at most; undefined if it is not known yet, or if the message is complete.
   */
  readonly incompleteBytes: number | undefined;
}

/**
 * Reads a request's body into an assembler; resolves at its end. Nothing of the body is read before this
 * call. A message that does not arrive in one piece waits for memory of the budget first, and so does its
 * sender.
 *
 * After a refusal, the rest of the body is read and dropped, so that its sender gets to the answer.
 *
 * @throws as the assembler; Refusal OVERLOADED as `reserve`; CANCELLED if the caller leaves first.
 */
export function readBody(
  body: Readable,
  assembler: MessageAssembler,
  budget: ConnectionInboundBudget,
  principal: Principal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // The caller left while it was authenticated: the body has no event left.
    if (body.destroyed) {
      reject(callerLeft());
      return;
    }
    let ended = false;
    let reserved = false;
    let release: Release | undefined;

    function end(): void {
      ended = true;
      release?.();
    }

    function refuse(error: unknown): void {
      end();
      reject(error);
      body.resume();
    }

    function resume(given: Release): void {
      release = given;
      if (ended) given();
      else body.resume();
    }

    function reserve(bytes: number): void {
      reserved = true;
      const given = budget.reserve(principal, bytes);
      if (given instanceof Promise) {
        body.pause();
        given.then(resume, refuse);
      } else release = given;
    }

    body.on("data", (piece: Buffer) => {
      if (ended) return;
      try {
        assembler.push(piece);
        const { incompleteBytes } = assembler;
        if (incompleteBytes !== undefined && !reserved) reserve(incompleteBytes);
      } catch (error) {
        refuse(error);
      }
    });
    body.on("end", () => {
      end();
      resolve();
    });
    body.on("close", () => {
      if (ended) return;
      end();
      reject(callerLeft());
    });
  });
}

function callerLeft(): Refusal {
  return new Refusal("CANCELLED", "The caller disconnected.");
}

/**
 * Joins the pieces of a message. It copies them: a piece keeps the whole buffer alive that was read from the
 * socket, and pieces of one byte each would take a hundred times their size.
 *
 * @param start Bytes before the first piece; they are neither copied nor changed.
 */
export function createByteCollector(start: Buffer = Buffer.alloc(0)) {
  let space = start;
  let byteLength = start.byteLength;
  return {
    get byteLength(): number {
      return byteLength;
    },
    push(piece: Uint8Array): void {
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
    /** Returns a view of the bytes so far; later pieces do not change it. */
    view: () => space.subarray(0, byteLength),
  };
}

/** The prefix of a message: a byte of flags, and the message's length. */
const PREFIX_BYTES = 5;
/** The only flag. */
const COMPRESSED = 1;

const EMPTY = Buffer.alloc(0);

/**
 * Creates a reader of the one length-prefixed message of a unary call
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): a MessageAssembler.
 */
export function createMessageReader(maxBytes: number) {
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
    /**
     * @throws Refusal INVALID_REQUEST as soon as the message is known to be too long.
     * @throws ProtocolError for unknown flags and for a second message.
     */
    push(chunk: Uint8Array): void {
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
    /** @throws ProtocolError if the message is missing or incomplete. */
    end(): { readonly message: Buffer; readonly compressed: boolean } {
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
export function createMessageSplitter(maxBytes: number) {
  let collected = createByteCollector();
  /** The next message's length without its prefix; undefined until the prefix is there. */
  let messageBytes: number | undefined;

  return {
    push: (chunk: Buffer) => collected.push(chunk),
    /**
     * Returns the next complete message, as a view of the pushed bytes; undefined if there is none.
     *
     * @throws ProtocolError as soon as the message is known to be too long, or compressed.
     */
    next(): Buffer | undefined {
      if (collected.byteLength < PREFIX_BYTES) return undefined;
      const received = collected.view();
      messageBytes ??= readPrefix(received, maxBytes);
      const end = PREFIX_BYTES + messageBytes;
      if (received.byteLength < end) return undefined;
      collected = createByteCollector(received.subarray(end));
      messageBytes = undefined;
      return received.subarray(PREFIX_BYTES, end);
    },
    /** Whether a part of a message has arrived. */
    hasPartialMessage: () => collected.byteLength > 0,
    /** The length of the partial message with its prefix; undefined if it is not known yet. */
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
