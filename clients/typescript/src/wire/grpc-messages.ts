import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  mergeFromBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeMessage } from "./message-encoder.ts";

/** A flag, which says whether it is compressed, and the length. */
const PREFIX_BYTES = 5;
/** What stands before a message whose length is not known yet. */
const EMPTY_PREFIX = new Uint8Array(PREFIX_BYTES);

/**
 * A message as gRPC sends it.
 *
 * @throws ConnectError INTERNAL for what is no such message.
 */
export function frameMessage<Desc extends DescMessage>(
  desc: Desc,
  input: MessageInitShape<Desc>,
): Uint8Array {
  const body = within("the request can't be encoded", () => encodeMessage(EMPTY_PREFIX, desc, input));
  new DataView(body.buffer, body.byteOffset).setUint32(1, body.byteLength - PREFIX_BYTES);
  return body;
}

/**
 * The one message that a body is.
 *
 * @throws ConnectError INTERNAL unless it is exactly one such message.
 */
export function readMessage<Desc extends DescMessage>(desc: Desc, body: Buffer): MessageShape<Desc> {
  const messages = new MessageSplitter();
  messages.push(body);
  const message = messages.next();
  if (message === undefined || messages.hasPartialMessage())
    throw new ConnectError("the answer is not one whole message", Code.Internal);
  return decodeMessage(desc, message);
}

/** @throws ConnectError INTERNAL for what is no such message. */
export function decodeMessage<Desc extends DescMessage>(desc: Desc, bytes: Buffer): MessageShape<Desc> {
  // No Buffer: a message's bytes are views of what it was read from, and of the same class.
  const message = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return within("the answer can't be decoded", () =>
    mergeFromBinary(desc, create(desc, emptyListsOf(desc)), message),
  );
}

/** Takes the messages of an answer out of what comes of it piece by piece. */
export class MessageSplitter {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the next message, without its prefix; undefined until that is there. */
  #messageBytes: number | undefined;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
  }

  /**
   * The next message, if all of it is there.
   *
   * @throws ConnectError INTERNAL if it is compressed.
   */
  next(): Buffer | undefined {
    if (this.#bytes < PREFIX_BYTES) return undefined;
    this.#messageBytes ??= messageLength(this.#joined());
    const end = PREFIX_BYTES + this.#messageBytes;
    if (this.#bytes < end) return undefined;
    const whole = this.#joined();
    this.#chunks = this.#bytes === end ? [] : [whole.subarray(end)];
    this.#bytes -= end;
    this.#messageBytes = undefined;
    return whole.subarray(PREFIX_BYTES, end);
  }

  /** Whether there is part of a message. */
  hasPartialMessage(): boolean {
    return this.#bytes > 0;
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && this.#chunks.length === 1) return first;
    const whole = Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = [whole];
    return whole;
  }
}

function messageLength(prefix: Buffer): number {
  if (prefix[0] !== 0)
    throw new ConnectError("the answer is compressed, which was not asked for", Code.Internal);
  return prefix.readUInt32BE(1);
}

/**
 * An init by whose lists `create` makes a message's own. Without one it takes them from a literal, which V8 comes to
 * allocate among its old objects, because lists of descriptors stay: each would keep a batch's replies alive until the
 * next full collection (`server/decisions/0009-memory.md`).
 */
function emptyListsOf<Desc extends DescMessage>(desc: Desc): MessageInitShape<Desc> {
  let init = emptyLists.get(desc);
  if (init === undefined) {
    // Lists of anything else aren't copied.
    const lists = desc.fields.filter((field) => field.fieldKind === "list" && field.listKind === "message");
    init = Object.fromEntries(lists.map(({ localName }) => [localName, []]));
    emptyLists.set(desc, init);
  }
  return init as MessageInitShape<Desc>;
}

const emptyLists = new WeakMap<DescMessage, object>();

function within<Value>(what: string, make: () => Value): Value {
  try {
    return make();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ConnectError(`${what}: ${why}`, Code.Internal, undefined, undefined, cause);
  }
}
