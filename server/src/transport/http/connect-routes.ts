import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import {
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type {
  UniversalServerRequest as ServerRequest,
  UniversalServerResponse as ServerResponse,
  UniversalHandler,
} from "@connectrpc/connect/protocol";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import type { Principal } from "../../domain/tenant.ts";
import { type ConnectionInboundBudget, type OutboundBudget, reserveReply } from "../bounds/memory-budgets.ts";
import { malformed, toConnectError, tooLarge } from "../errors.ts";
import type { IncomingCall, Pipeline } from "../pipeline.ts";
import { type Compression, REPLY_COMPRESSIONS } from "../receive/compression.ts";
import { createByteCollector, createMessageReader, frameMessage, readBody } from "../receive/read-body.ts";
import {
  type MessageLimits,
  messageLimits,
  parseTimeoutMs,
  type ReceivedMessage,
  TIMEOUT_HEADER,
} from "../receive/read-message.ts";
import type { Route } from "../route.ts";
import { misdirected } from "./port.ts";
import type { PageSite } from "./web-page.ts";

/** The parts that the requests of a connection share. */
export interface HttpConnection {
  readonly inbound: ConnectionInboundBudget;
  readonly outbound: OutboundBudget;
  readonly replies: ConnectionInboundBudget;
  /** The address of the other end. */
  readonly peer: string | undefined;
}

/** One request of a connection. */
interface Arrival extends HttpConnection {
  readonly response: Writable;
  readonly receive: Receive;
}

const ARRIVAL = createContextKey<Arrival | undefined>(undefined);

/**
 * Returns the handlers of Connect, gRPC-Web and JSON by path. Without a `site`, no cookie is looked at.
 *
 * connect-node would decompress and parse a message before the pipeline has authenticated its sender. So it
 * gets each request with an empty message, and the pipeline reads the message. connect-node recognises the
 * protocols and answers in them.
 */
export function createConnectHandlers(
  routes: readonly Route[],
  pipeline: Pipeline,
  site: PageSite | undefined,
) {
  const router = createConnectRouter({
    // Native gRPC has a separate port.
    grpc: false,
    acceptCompression: REPLY_COMPRESSIONS,
    writeMaxBytes: 2 * MAX_MESSAGE_BYTES,
  });
  for (const route of routes) {
    router.rpc(route.method, async (_empty: unknown, context: HandlerContext) => {
      try {
        // connect-node encodes the reply, in the request's protocol.
        return await pipeline.answer(route, incomingCall(route, context, site), (reply) => reply);
      } catch (error) {
        throw toConnectError(error, context.protocolName);
      }
    });
  }
  return new Map(
    router.handlers.map((handle) => [
      handle.requestPath,
      /** Answers a request, whose body is a separate argument; rejects only if the caller has left. */
      (request: ServerRequest, body: Readable, arrived: Omit<Arrival, "receive">) => {
        const { empty, receive } = splitRequest(request, body);
        const contextValues = createContextValues().set(ARRIVAL, { ...arrived, receive });
        return handle({ ...empty, contextValues }).then((answered) => explained(answered, request, handle));
      },
    ]),
  );
}

type ConnectHandler = NonNullable<ReturnType<ReturnType<typeof createConnectHandlers>["get"]>>;

/** Adds a line of JSON to an answer of connect-node to a request of none of its protocols, which is empty. */
function explained(
  answered: ServerResponse,
  { method }: ServerRequest,
  { allowedMethods }: Pick<UniversalHandler, "allowedMethods">,
): ServerResponse {
  const { status, body } = answered;
  if (body !== undefined || (status !== 405 && status !== 415)) return answered;
  const allow = allowedMethods.join(", ");
  const header = new Headers({ "content-type": "application/json" });
  if (status === 405) header.set("allow", allow);
  const form = method === "GET" ? GET_FORM : POST_FORM;
  const message = status === 405 ? `The method must be ${allow}.` : form;
  return { status, header, body: only(Buffer.from(misdirected(status, message))) };
}

/**
 * Returns a handler that answers with the text of a route's reply, a StringValue, as OpenMetrics; errors are those of JSON.
 * The request's parameters are not read.
 */
export function createMetricsHandler(route: Route, pipeline: Pipeline): ConnectHandler {
  const handle = createConnectHandlers([route], pipeline, undefined).get(route.path) as ConnectHandler;
  return async (request, body, arrived) => {
    if (request.method !== "GET") return explained({ status: 405 }, request, { allowedMethods: ["GET"] });
    const header = new Headers(request.header);
    for (const name of ["accept-encoding", "content-type"]) header.delete(name);
    const { href } = new URL(`${route.path}?encoding=json&message={}`, request.url);
    const answered = await handle({ ...request, header, url: href }, body, arrived);
    if (answered.status !== 200 || answered.body === undefined) return answered;
    const value = JSON.parse(await text(answered.body));
    const type = { "content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8" };
    return { status: 200, header: new Headers(type), body: only(Buffer.from(value)) };
  };
}

const POST_FORM =
  "The content-type must be application/json, application/proto, or one of application/grpc-web.";
const GET_FORM = "A call by GET has the parameters encoding=json and message=<JSON>.";

function incomingCall(
  { method, role }: Route,
  { values, signal, requestHeader, requestMethod, protocolName }: HandlerContext,
  site: PageSite | undefined,
): IncomingCall {
  const arrival = values.get(ARRIVAL);
  if (arrival === undefined) throw new Error("a request did not pass splitRequest");
  const { receive, inbound, outbound, replies, response, peer } = arrival;
  const header = (name: string) => requestHeader.get(name) ?? undefined;
  return {
    peer,
    signal,
    header,
    /**
     * The console's page sends a header that no form and no link can send, from its own origin. It administers: it makes no
     * claims.
     */
    get sessionCookie() {
      const isOfPage =
        protocolName === "connect" &&
        requestMethod === "POST" &&
        header("connect-protocol-version") === "1" &&
        role !== "CALLER";
      return isOfPage ? site?.sessionCookie(header) : undefined;
    },
    get timeoutMs() {
      return parseTimeoutMs(header(TIMEOUT_HEADER));
    },
    get cancelled() {
      return signal.aborted;
    },
    async receive(principal) {
      outbound.admit();
      await reserveReply(replies, principal, method, response);
      return receive(messageLimits(method), inbound, principal);
    },
  };
}

/**
 * Reads a request's message; called at most once.
 *
 * @throws Refusal INVALID_REQUEST if it is too large; OVERLOADED and CANCELLED as `readBody`.
 * @throws ProtocolError if a gRPC-Web frame is malformed.
 */
type Receive = (
  limits: MessageLimits,
  budget: ConnectionInboundBudget,
  principal: Principal,
) => Promise<ReceivedMessage>;

/** A request of Connect, gRPC-Web or JSON, separated from its message. */
interface SplitRequest {
  /** The same request with an empty message, which connect-node can read in every protocol. */
  readonly empty: ServerRequest;
  readonly receive: Receive;
}

type Format = ReceivedMessage["format"];

/**
 * Separates a request from its message, which arrives as `body`. The headers stay as they are, so that
 * connect-node refuses those that it can't accept.
 */
function splitRequest(request: ServerRequest, body: Readable): SplitRequest {
  if (request.method === "GET") return splitGet(request);
  const contentType = request.header.get("content-type") ?? "";
  const format = contentType.toLowerCase().includes("json") ? "json" : "binary";
  return contentType.toLowerCase().startsWith("application/grpc-web")
    ? splitGrpcWeb(request, body, format)
    : splitConnect(request, body, format);
}

const EMPTY: Readonly<Record<Format, Buffer>> = { json: Buffer.from("{}"), binary: Buffer.alloc(0) };

/** https://connectrpc.com/docs/protocol#unary-get-request */
function splitGet(request: ServerRequest): SplitRequest {
  const url = new URL(request.url);
  const query = url.searchParams;
  const format = query.get("encoding") === "json" ? "json" : "binary";
  const text = query.get("message") ?? "";
  const isBase64 = query.get("base64") === "1";
  const compression = knownCompression(query.get("compression"));
  query.delete("base64");
  if (compression !== undefined) query.delete("compression");
  query.set("message", EMPTY[format].toString());
  return {
    empty: { ...request, url: url.href },
    receive: async () => ({ bytes: isBase64 ? fromBase64(text) : Buffer.from(text), format, compression }),
  };
}

function splitConnect(request: ServerRequest, body: Readable, format: Format): SplitRequest {
  const compression = knownCompression(request.header.get("content-encoding"));
  return {
    empty: withBody(request, EMPTY[format], "content-encoding"),
    async receive(limits, budget, principal) {
      const { maxBytes } = limits[format];
      const declaredBytes = declaredLength(request);
      if (declaredBytes !== undefined && declaredBytes > maxBytes) throw tooLarge(maxBytes, declaredBytes);
      const assembler = createBodyAssembler(maxBytes, declaredBytes);
      await readBody(body, assembler, budget, principal);
      return { bytes: assembler.view(), format, compression };
    },
  };
}

function splitGrpcWeb(request: ServerRequest, body: Readable, format: Format): SplitRequest {
  const compression = knownCompression(request.header.get("grpc-encoding"));
  return {
    empty: withBody(request, frameMessage(EMPTY[format]), "grpc-encoding"),
    async receive(limits, budget, principal) {
      const reader = createMessageReader(limits[format].maxBytes);
      await readBody(body, reader, budget, principal);
      const { message, compressed } = reader.end();
      return { bytes: message, format, compression: compressed ? compression : undefined };
    },
  };
}

/**
 * A body without a declared length reserves memory for the largest message only when it exceeds this size.
 */
const FREE_BYTES = 16 * 1024;

function createBodyAssembler(maxBytes: number, declaredBytes: number | undefined) {
  const collected = createByteCollector();
  return {
    push(piece: Buffer): void {
      if (collected.byteLength + piece.byteLength > maxBytes) throw tooLarge(maxBytes, undefined);
      collected.push(piece);
    },
    get incompleteBytes(): number | undefined {
      const { byteLength } = collected;
      if (declaredBytes !== undefined) return byteLength < declaredBytes ? declaredBytes : undefined;
      return byteLength <= FREE_BYTES ? undefined : maxBytes;
    },
    view: collected.view,
  };
}

function declaredLength({ header }: ServerRequest): number | undefined {
  const length = header.get("content-length");
  return length === null ? undefined : Number(length);
}

/** Returns a compression that connect-node offers; connect-node refuses others. */
function knownCompression(name: string | null): Compression | undefined {
  return name === "gzip" || name === "br" ? name : undefined;
}

function withBody(request: ServerRequest, body: Uint8Array, encodingHeader: string): ServerRequest {
  const header = new Headers(request.header);
  header.delete("content-length");
  if (knownCompression(header.get(encodingHeader)) !== undefined) header.delete(encodingHeader);
  return { ...request, header, body: only(body) };
}

async function* only(body: Uint8Array): AsyncIterable<Uint8Array> {
  yield body;
}

/** Decodes standard or URL-safe base64, with or without padding. */
function fromBase64(text: string): Buffer {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  const bytes = Buffer.from(standard, "base64");
  // Node skips characters that are not base64.
  if (bytes.toString("base64").replace(/=+$/, "") !== standard) throw malformed("is not base64");
  return bytes;
}
