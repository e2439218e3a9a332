import diagnostics from "node:diagnostics_channel";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { refuseCompression } from "../compression.ts";
import type { AddressLimit } from "../connections.ts";
import { MAX_READ_BYTES } from "../grpc-messages.ts";
import type { Pipeline } from "../pipeline.ts";
import type { Route } from "../route.ts";
import { takeTimeoutHeader } from "../timeouts.ts";
import type { Tls } from "../tls.ts";
import type { TransportBudgets } from "../transport-budgets.ts";
import { createUnreadReplies } from "../unread-replies.ts";
import { BATCH_STREAM_PATH, createBatchStreams } from "./batch-stream.ts";
import { closeWhenIdle } from "./idle-session.ts";
import { createGrpcListener } from "./listener.ts";
import { addReflection } from "./reflection.ts";
import { createSlowRequests } from "./slow-requests.ts";
import { forgetWhenClosed, isGrpcCall } from "./streams.ts";
import { answerUnaryCall } from "./unary-call.ts";

/** The port for services: native gRPC, with health and reflection. */
export interface GrpcServer {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** What `grpc.health.v1` answers. */
  setServing(serving: boolean): void;
  /** Sends GOAWAY, lets calls finish for so long, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

export interface GrpcServerOptions extends AddressLimit {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly budgets: TransportBudgets;
  /** A connection is asked to leave after this, ±10 %, so that load spreads to new replicas. */
  readonly connectionAgeMs: number;
  /** How long a request may take to arrive whole. */
  readonly requestTimeoutMs: number;
  readonly tls: Tls | undefined;
}

/** A connection that has been asked to leave is closed after this: longer than a wait. */
const CONNECTION_AGE_GRACE_MS = 70_000;
/** Of a connection that has made a call; one that never did goes by its age. */
const CONNECTION_IDLE_MS = 10 * 60_000;
/** A client that connects and says nothing. */
const MAX_HANDSHAKE_MS = 10_000;
/** A peer that vanished without a word is found out within these two. */
const KEEPALIVE_TIME_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** Enough for a client that doesn't batch; more than this from one connection queues in the client. */
const MAX_CONCURRENT_STREAMS = 2000;
/** Per connection: more than a client that reads leaves unread, be it a slow one that asks for 200 results of 1 MiB at once. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024;
/** In megabytes, per connection. */
const MAX_SESSION_MEMORY_MB = 64;

// grpc-js prints headers that it can't take, with their values, past the log: a credential may be among them.
grpc.setLogVerbosity(grpc.logVerbosity.NONE);

/**
 * Connections are grpc-js's, and so are health and reflection. Our own calls are answered right on
 * their streams: what grpc-js makes for each call costs more than half as much again as HTTP/2 (decisions/0010).
 *
 * @see GrpcServer
 */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { routes, pipeline, budgets, connectionAgeMs, requestTimeoutMs, tls } = options;
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_READ_BYTES,
    "grpc.max_send_message_length": MAX_READ_BYTES,
    "grpc.max_concurrent_streams": MAX_CONCURRENT_STREAMS,
    "grpc.max_connection_age_ms": connectionAgeMs,
    "grpc.max_connection_age_grace_ms": CONNECTION_AGE_GRACE_MS,
    "grpc.keepalive_time_ms": KEEPALIVE_TIME_MS,
    "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
    "grpc-node.max_session_memory": MAX_SESSION_MEMORY_MB,
    "grpc.enable_channelz": 0,
  });
  const services = new Set(routes.map((route) => route.method.parent));
  const health = new HealthImplementation({ "": "NOT_SERVING" });
  for (const { typeName } of services) health.setStatus(typeName, "NOT_SERVING");
  health.addToServer(server);
  addReflection(server, [...services]);
  const routesByPath = new Map(routes.map((route) => [route.path, route]));
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const listener = createGrpcListener({
    accept: (socket) => injector.injectConnection(socket),
    tls,
    maxPerAddress: options.maxPerAddress,
    handshakeTimeoutMs: Math.min(MAX_HANDSHAKE_MS, requestTimeoutMs),
  });
  const slowRequests = createSlowRequests({ timeoutMs: requestTimeoutMs });
  const known = new WeakSet<ServerHttp2Session>();
  const batchStreams = createBatchStreams({ routes, pipeline, timeoutMs: requestTimeoutMs });

  /** Puts itself between a connection and grpc-js, before either has seen a stream of it. */
  function adopt(session: ServerHttp2Session): void {
    known.add(session);
    if (session.socket.localPort !== listener.port()) return;
    const toGrpcJs = session.listeners("stream");
    const busyWith = closeWhenIdle(session, CONNECTION_IDLE_MS);
    const unread = createUnreadReplies(MAX_UNREAD_BYTES, budgets.unread);
    const connection = { pipeline, slowRequests, unread, arriving: budgets.arriving.ofConnection() };
    const answerBatchStream = batchStreams.ofConnection(connection);
    session.removeAllListeners("stream");
    session.on("stream", (stream, headers, ...rest) => {
      busyWith(stream);
      const path = isGrpcCall(headers) ? headers[":path"] : undefined;
      if (path === BATCH_STREAM_PATH) return answerBatchStream(stream, headers);
      const route = path === undefined ? undefined : routesByPath.get(path);
      if (route !== undefined) return answerUnaryCall(stream, headers, route, connection);
      slowRequests.watch(stream);
      if (path === undefined) return refuseOtherProtocol(stream);
      takeTimeoutHeader(headers);
      refuseCompression(headers);
      for (const listen of toGrpcJs) listen.call(session, stream, headers, ...rest);
    });
  }

  const onStreamCreated = (message: unknown) => {
    const { session } = (message as StreamCreated).stream;
    if (!known.has(session)) adopt(session);
  };
  diagnostics.subscribe(STREAM_CREATED, onStreamCreated);

  return {
    listen: listener.listen,
    setServing(serving) {
      const status = serving ? "SERVING" : "NOT_SERVING";
      health.setStatus("", status);
      for (const { typeName } of services) health.setStatus(typeName, status);
    },
    async close(graceMs) {
      const closed = listener.close(graceMs);
      // Sends GOAWAY. It doesn't wait for connections that it didn't accept itself.
      server.tryShutdown(() => {});
      batchStreams.leave();
      await closed;
      diagnostics.unsubscribe(STREAM_CREATED, onStreamCreated);
      slowRequests.stop();
    },
  };
}

/** As the protocol of gRPC has it for another content type, and for another method. */
function refuseOtherProtocol(stream: ServerHttp2Stream): void {
  forgetWhenClosed(stream);
  stream.respond({ ":status": 415 }, { endStream: true });
  stream.resume();
}

/** Published by Node before a session tells of a stream. https://nodejs.org/api/diagnostics_channel.html */
const STREAM_CREATED = "http2.server.stream.created";

interface StreamCreated {
  readonly stream: { readonly session: ServerHttp2Session };
}
