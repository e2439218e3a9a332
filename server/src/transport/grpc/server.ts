import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import type { DescService } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Health as HealthService } from "../../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { countedAddress, createPort } from "../bounds/connections.ts";
import {
  createHeaderCollector,
  hasTooManyHeaders,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  tooManyHeaders,
} from "../bounds/header-list.ts";
import {
  type InboundBudget,
  type OutboundTotal,
  outboundOfGrpcConnection,
  type RequestBudget,
} from "../bounds/memory-budgets.ts";
import { createAddressShares } from "../bounds/turn-shares.ts";
import type { Pipeline } from "../pipeline.ts";
import { pathOf, type Route } from "../route.ts";
import type { Tls } from "../tls.ts";
import { type BatchStreams, createBatchStreams } from "./batch-stream.ts";
import { createFirstBytes, HTTP1_ANSWER, OTHER_PORT } from "./first-bytes.ts";
import { Health } from "./health.ts";
import {
  endWithStatus,
  failureStatus,
  forgetWhenClosed,
  grpcStatus,
  isClosed,
  isGrpcCall,
} from "./protocol.ts";
import { answerReflection, collectDescriptors } from "./reflection.ts";
import {
  createSlowRequests,
  createUnacknowledged,
  type GrpcConnection,
  SESSION_TIMES,
  SessionLifecycle,
} from "./session.ts";
import { answerUnaryCall } from "./unary-call.ts";

const MAX_HANDSHAKE_MS = 10_000;
/** Enough for a client that doesn't batch; further calls of the connection queue in the client. */
const MAX_CONCURRENT_STREAMS = 2000;
/**
 * Longer lists are reset before they cost anything; shorter ones that are still too long get a status that says so. It does not hold
 * until the client has acknowledged the settings (session.ts): until then, a list has at most nine frames, 144 KiB.
 */
const MAX_KEPT_HEADER_BYTES = 2 * MAX_HEADER_BYTES;
const SESSION_OPTIONS = {
  settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS, maxHeaderListSize: MAX_KEPT_HEADER_BYTES },
  maxHeaderListPairs: 2 * MAX_HEADERS,
  /** In megabytes. */
  maxSessionMemory: 64,
  // A refusal that names many violations has trailers of more than Node's default, 64 KiB.
  maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
};

/** Creates the port for services on `node:http2`: native gRPC, with health and reflection (README.md). */
export function createGrpcServer(options: {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly inboundBudget: InboundBudget;
  readonly outboundTotal: OutboundTotal;
  readonly replyBudget: InboundBudget;
  readonly requestBudget: RequestBudget;
  /** The age at which a connection gets a GOAWAY, ±10 %, so that load spreads to new replicas. */
  readonly connectionAgeMs: number;
  /** The longest time that a request may take to arrive. */
  readonly requestTimeoutMs: number;
  readonly tls: Tls | undefined;
  /** As `createPort`. */
  readonly maxPerAddress: number;
}) {
  const { routes, pipeline, requestTimeoutMs, tls } = options;
  const services = [...new Set(routes.map((route) => route.method.parent))];
  const health = new Health(services.map(({ typeName }) => typeName));
  const answerOf = createAnswers(routes, streamsOf(services, health));
  const headersReceived = createHeaderCollector();
  const slowRequests = createSlowRequests(requestTimeoutMs);
  const unacknowledged = createUnacknowledged();
  const batchStreamsOf = createBatchStreams(routes, requestTimeoutMs);
  const sessionTimes = { ...SESSION_TIMES, maxAgeMs: options.connectionAgeMs };
  const addresses = createAddressShares();
  const lifecycles = new Set<SessionLifecycle>();
  let draining = false;

  function serve(socket: Socket, peer: string | undefined): void {
    const address = countedAddress(peer ?? "");
    const session = performServerHandshake(socket, SESSION_OPTIONS);
    const shared = {
      pipeline,
      slowRequests,
      inbound: options.inboundBudget.ofConnection(),
      outbound: outboundOfGrpcConnection(options.outboundTotal),
      replies: options.replyBudget.ofConnection(),
      peer,
      inTurn: (work: () => void) => addresses.run(address, work),
    };
    const batchStreams = batchStreamsOf(shared);
    const connection = {
      ...shared,
      batchStreams,
      watches: new Set<ServerHttp2Stream>(),
      reflections: new Set<ServerHttp2Stream>(),
    };
    const requests = options.requestBudget.ofConnection(address);
    const lifecycle = new SessionLifecycle(session, socket, sessionTimes, batchStreams.leave);
    unacknowledged.watch(session, socket);
    lifecycles.add(lifecycle);
    session.once("close", () => {
      lifecycles.delete(lifecycle);
      requests.end();
    });
    // Node closes the session of an error, and its streams.
    session.on("error", () => {});
    session.on("stream", (stream, headers, _flags, rawHeaders) => {
      forgetWhenClosed(stream);
      const headerBytes = headersReceived(rawHeaders);
      stream.on("trailers", (_trailers, _flags, raw) => void headersReceived(raw));
      const closed = requests.open(headerBytes);
      if (closed === undefined) {
        // Says that nothing was done of the call (RFC 9113, section 8.7), and takes no answer that a peer could leave unread.
        stream.close(constants.NGHTTP2_REFUSED_STREAM);
        return;
      }
      stream.on("close", closed);
      lifecycle.streamOpened(stream);
      const answer = hasTooManyHeaders(rawHeaders, headerBytes) ? refuseHeaders : answerOf(headers);
      const drop = shared.inTurn(() => isClosed(stream) || answer(stream, headers, connection));
      if (drop !== undefined) stream.once("close", drop);
    });
    // The connection's TLS handshake was in progress when the server began to drain.
    if (draining) lifecycle.drain();
  }

  const { close, ...listeners } = createListeners(serve, {
    tls,
    maxPerAddress: options.maxPerAddress,
    handshakeTimeoutMs: Math.min(MAX_HANDSHAKE_MS, requestTimeoutMs),
  });

  return {
    ...listeners,
    /** Sets the status that `grpc.health.v1` reports. */
    setServing: (serving: boolean) => health.setServing(serving),
    /** Sends GOAWAY on all sessions, and closes the port and the socket. */
    async close(graceMs: number): Promise<void> {
      const closed = close(graceMs);
      draining = true;
      for (const lifecycle of lifecycles) lifecycle.drain();
      await closed;
      slowRequests.stop();
      unacknowledged.stop();
    },
  };
}

/** What the streams of a connection share. */
interface Connection extends GrpcConnection {
  readonly batchStreams: BatchStreams;
  /** Its open streams of Watch, and of reflection. */
  readonly watches: Set<ServerHttp2Stream>;
  readonly reflections: Set<ServerHttp2Stream>;
}

/** Answers a stream. */
type AnswerStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection) => void;

/** Returns a function that finds what answers a stream by its headers. */
function createAnswers(routes: readonly Route[], streams: ReturnType<typeof streamsOf>) {
  const ofRoutes = routes.map((route): readonly [string, AnswerStream] => [
    route.path,
    (stream, headers, connection) => answerUnaryCall(stream, headers, route, connection),
  ]);
  const answers = new Map([...ofRoutes, ...streams]);
  return (headers: IncomingHttpHeaders): AnswerStream =>
    isGrpcCall(headers) ? (answers.get(headers[":path"] ?? "") ?? refuseOtherPath) : refuseOtherProtocol;
}

/** Returns the paths that are not answered by the handler of a route, and what answers them. */
function streamsOf(
  services: readonly DescService[],
  health: Health,
): readonly (readonly [string, AnswerStream])[] {
  const descriptors = collectDescriptors([...services, HealthService, ServerReflection]);
  const reflect = inTime((stream, headers, connection) =>
    answerReflection(stream, headers, connection, connection.reflections, descriptors),
  );
  const { check, list, watch } = HealthService.method;
  return [
    [
      pathOf(IdempotencyService.method.batchStream),
      (stream, headers, { batchStreams }) => batchStreams.answer(stream, headers),
    ],
    [pathOf(check), inTime((stream, _, { outbound }) => health.check(stream, outbound))],
    [pathOf(list), inTime((stream, _, { outbound }) => health.list(stream, outbound))],
    [pathOf(watch), inTime((stream, _, { watches }) => health.watch(stream, watches))],
    [pathOf(ServerReflection.method.serverReflectionInfo), reflect],
    // grpcio-reflection and evans ask under this name only; its messages are those of v1.
    ["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", reflect],
  ];
}

/** Bounds the time of a stream's request from its headers on. Unary calls and BatchStreams bound it themselves, once they read. */
function inTime(answer: AnswerStream): AnswerStream {
  return (stream, headers, connection) => {
    connection.slowRequests.watch(stream);
    answer(stream, headers, connection);
  };
}

const refuseOtherPath = inTime((stream) =>
  endWithStatus(stream, grpcStatus(Code.Unimplemented, "The server does not implement this method.")),
);

const refuseHeaders = inTime((stream) => endWithStatus(stream, failureStatus(tooManyHeaders())));

/** Answers as gRPC's protocol says for another method or content type. */
const refuseOtherProtocol = inTime((stream, _headers, { outbound }) => {
  stream.respond({ ":status": 415, "content-type": "text/plain" });
  outbound.countUntilClosed(stream, OTHER_PORT.length);
  stream.end(OTHER_PORT);
  stream.resume();
});

/** Each connection costs memory and a file descriptor; a client needs one. */
const MAX_CONNECTIONS = 10_000;

/** In place of an address for callers on the Unix socket, who share the bounds of one. */
const SOCKET_PEER = "unix";

/** Creates the listeners of the gRPC port, and of the socket, which has no TLS. */
function createListeners(
  accept: (socket: Socket, peer: string | undefined) => void,
  options: Omit<Parameters<typeof createGrpcListener>[0], "accept">,
) {
  const port = createGrpcListener({ ...options, accept: (socket) => accept(socket, socket.remoteAddress) });
  const local = createGrpcListener({
    ...options,
    tls: undefined,
    accept: (socket) => accept(socket, SOCKET_PEER),
  });
  return {
    listen: port.listen,
    listenOnSocket: local.listenOnSocket,
    connections: () => port.connections() + local.connections(),
    close: (graceMs: number) => Promise.all([port.close(graceMs), local.close(graceMs)]),
  };
}

/** Creates the TCP or TLS listener of the gRPC port. */
export function createGrpcListener(options: {
  /** Called with each connection, once HTTP/2 can begin on it. */
  readonly accept: (socket: Socket) => void;
  readonly tls: Tls | undefined;
  /** The longest TLS handshake, and the longest silence after it. */
  readonly handshakeTimeoutMs: number;
  readonly maxPerAddress: number;
}) {
  const { tls, handshakeTimeoutMs } = options;
  const firstBytes = createFirstBytes(handshakeTimeoutMs, {
    begin: options.accept,
    refuse: (socket) => endConnection(socket, handshakeTimeoutMs),
  });
  const accept = (socket: Socket) => {
    if (!socket.destroyed) firstBytes.watch(socket);
  };
  const listener =
    tls === undefined ? createServer(accept) : createTlsListener(tls, handshakeTimeoutMs, accept);
  listener.maxConnections = MAX_CONNECTIONS;
  const port = createPort(listener, options.maxPerAddress);
  const close = (graceMs: number) => {
    firstBytes.stop();
    return port.close(graceMs);
  };
  return { ...port, close };
}

function createTlsListener(tls: Tls, handshakeTimeout: number, accept: (socket: Socket) => void): Server {
  const options = { ...tls.options, handshakeTimeout, ALPNProtocols: ["h2"] };
  const listener = createSecureServer(options, (socket) => {
    // A peer can break TLS while HTTP/2 does not listen for errors, or no longer does.
    socket.on("error", () => {});
    if (socket.alpnProtocol === "h2") accept(socket);
    else endConnection(socket, handshakeTimeout);
  });
  // Node leaves the connection of a handshake that failed, or took too long, open.
  listener.on("tlsClientError", (_error, socket) => socket.destroy());
  return tls.follow(listener);
}

/** Answers a client that does not speak HTTP/2, ends its connection, and cuts it if the client does not end it in time. */
function endConnection(socket: Socket, timeoutMs: number): void {
  socket.end(HTTP1_ANSWER);
  socket.resume();
  // Not `socket.setTimeout`: each byte that the client sends would prolong it.
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref();
  socket.once("close", () => clearTimeout(timer));
}
