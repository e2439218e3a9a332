import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  mergeFromBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { validateResponseWithCompression, validateTrailer } from "@connectrpc/connect/protocol-grpc";
import { type Answer, exchange } from "./http2-exchange.ts";
import { encodeMessage } from "./message-encoder.ts";
import type { SessionManager } from "./session-manager.ts";

/**
 * Connect's transport for unary gRPC, straight on an HTTP/2 connection. Connect's own serves streams, compression and
 * interceptors, too, and costs three times as much a call (`server/decisions/0005-what-a-claim-costs.md`).
 */
export function createUnaryTransport(sessions: SessionManager, authorization: string): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const answer = await exchange(sessions, {
        path: `/${method.parent.typeName}/${method.name}`,
        headers: requestHeaders(authorization, timeoutMs, header),
        body: encode(method.input, input),
        timeoutMs: timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined,
        signal,
      });
      check(answer);
      return new Reply(method, answer, decode(method.output, answer.body));
    },
    stream: () => Promise.reject(new ConnectError("Onceward has no streaming calls.", Code.Unimplemented)),
  };
}

class Reply<I extends DescMessage, O extends DescMessage> implements UnaryResponse<I, O> {
  readonly stream = false;
  readonly method: DescMethodUnary<I, O>;
  readonly message: MessageShape<O>;
  readonly #answer: Answer;

  constructor(method: DescMethodUnary<I, O>, answer: Answer, message: MessageShape<O>) {
    this.method = method;
    this.message = message;
    this.#answer = answer;
  }

  get service() {
    return this.method.parent;
  }
  /** Made when somebody asks, which hardly anybody does. */
  get header(): Headers {
    return webHeaders(this.#answer.headers);
  }
  get trailer(): Headers {
    return webHeaders(this.#answer.trailers);
  }
}

/** The most that gRPC's header takes, in its milliseconds: eight digits. */
const MAX_TIMEOUT_MS = 99_999_999;

function requestHeaders(
  authorization: string,
  timeoutMs: number | undefined,
  own: ConstructorParameters<typeof Headers>[0],
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = own === undefined ? {} : Object.fromEntries(new Headers(own));
  headers["content-type"] = "application/grpc+proto";
  headers["user-agent"] ??= "onceward-typescript";
  headers.te = "trailers";
  headers.authorization = authorization;
  if (timeoutMs !== undefined && timeoutMs > 0)
    headers["grpc-timeout"] = `${Math.min(Math.ceil(timeoutMs), MAX_TIMEOUT_MS)}m`;
  return headers;
}

/** A flag, which says whether it is compressed, and the length. */
const PREFIX_BYTES = 5;
/** What stands before a message whose length is not known yet. */
const EMPTY_PREFIX = new Uint8Array(PREFIX_BYTES);

/** @throws ConnectError INTERNAL for what is no such message. */
function encode<Desc extends DescMessage>(desc: Desc, input: MessageInitShape<Desc>): Uint8Array {
  const body = within("the request can't be encoded", () => encodeMessage(EMPTY_PREFIX, desc, input));
  new DataView(body.buffer, body.byteOffset).setUint32(1, body.byteLength - PREFIX_BYTES);
  return body;
}

/** @throws ConnectError INTERNAL unless the body is exactly one such message. */
function decode<Desc extends DescMessage>(desc: Desc, body: Buffer): MessageShape<Desc> {
  if (body.byteLength < PREFIX_BYTES) throw new ConnectError("the answer holds no message", Code.Internal);
  if (body[0] !== 0)
    throw new ConnectError("the answer is compressed, which was not asked for", Code.Internal);
  if (body.readUInt32BE(1) !== body.byteLength - PREFIX_BYTES)
    throw new ConnectError("the answer is not one whole message", Code.Internal);
  // No Buffer: a message's bytes are views of what it was read from, and of the same class.
  const message = new Uint8Array(body.buffer, body.byteOffset + PREFIX_BYTES, body.byteLength - PREFIX_BYTES);
  return within("the answer can't be decoded", () =>
    mergeFromBinary(desc, create(desc, emptyListsOf(desc)), message),
  );
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

/** @throws ConnectError if the call failed: the status is in the trailers, or, without a message, in the headers. */
function check({ headers, trailers }: Answer): void {
  if (trailers["grpc-status"] === OK && isPlainGrpc(headers)) return;
  const header = webHeaders(headers);
  const { headerError } = validateResponseWithCompression([], headers[":status"] ?? 0, header);
  if (headerError !== undefined) throw headerError;
  validateTrailer(webHeaders(trailers), header);
}

function isPlainGrpc({
  ":status": status,
  "content-type": type,
  "grpc-encoding": encoding,
}: Answer["headers"]) {
  const isPlain = encoding === undefined || encoding === "identity";
  return status === 200 && isPlain && type?.startsWith("application/grpc");
}

const OK = "0";

/** Without HTTP/2's own, which a Headers can't hold. */
function webHeaders(headers: IncomingHttpHeaders): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of Array.isArray(value) ? value : [value]) made.append(name, one);
  }
  return made;
}
