import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  mergeFromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";

/** The length of the prefix: a flag that says whether the message is compressed, and the length of the message. */
const PREFIX_BYTES = 5;
/**
 * Returns a message as gRPC sends it: the prefix and the message's bytes.
 *
 * @throws ConnectError INTERNAL if the message can't be encoded.
 */
export function frameMessage<Desc extends DescMessage>(
  desc: Desc,
  input: MessageInitShape<Desc>,
): Uint8Array {
  const message = within("the request can't be encoded", () => toBinary(desc, create(desc, input)));
  const frame = new Uint8Array(PREFIX_BYTES + message.byteLength);
  new DataView(frame.buffer).setUint32(1, message.byteLength);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/**
 * Returns the message of a body that holds exactly one.
 *
 * @throws ConnectError INTERNAL for any other body.
 */
export function readMessage<Desc extends DescMessage>(desc: Desc, body: Buffer): MessageShape<Desc> {
  const messages = new MessageSplitter();
  messages.push(body);
  const message = messages.next();
  if (message === undefined || messages.hasPartialMessage())
    throw new ConnectError("the answer is not one whole message", Code.Internal);
  return decodeMessage(desc, message);
}

/** Decodes a message. @throws ConnectError INTERNAL if the bytes are not such a message. */
export function decodeMessage<Desc extends DescMessage>(desc: Desc, bytes: Buffer): MessageShape<Desc> {
  // A Uint8Array, because a message's bytes fields are views of the same class as its source, which may be a Buffer.
  const message = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return within("the answer can't be decoded", () =>
    mergeFromBinary(desc, create(desc, emptyListsOf(desc)), message),
  );
}

/** Splits a response into its messages, as its chunks arrive. */
export class MessageSplitter {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The length of the next message without its prefix; undefined until the prefix has arrived. */
  #messageBytes: number | undefined;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
  }

  /**
   * Returns the next message, if all of it has arrived.
   *
   * @throws ConnectError INTERNAL if the message is compressed.
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

  /** Returns whether part of a message has arrived. */
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
 * Returns an init with an empty list for each list field. From an init, `create` makes each message's own lists.
 * Without one, it takes them from a literal that V8 allocates among its old objects, and each list would keep a
 * batch's replies alive until the next full collection (`server/decisions/0009-memory.md`).
 */
function emptyListsOf<Desc extends DescMessage>(desc: Desc): MessageInitShape<Desc> {
  let init = emptyLists.get(desc);
  if (init === undefined) {
    // `create` does not copy lists of other kinds.
    const lists = desc.fields.filter((field) => field.fieldKind === "list" && field.listKind === "message");
    init = Object.fromEntries(lists.map(({ localName }) => [localName, []]));
    emptyLists.set(desc, init);
  }
  return init as MessageInitShape<Desc>;
}

const emptyLists = new WeakMap<DescMessage, object>();

function within<Value>(description: string, make: () => Value): Value {
  try {
    return make();
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new ConnectError(`${description}: ${detail}`, Code.Internal, undefined, undefined, cause);
  }
}
