import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import type { AddressLimit } from "../connections.ts";
import { forgetWhenClosed, grpcStatus, isGrpcCall } from "../grpc-protocol.ts";
import { type InboundBudget, type OutboundTotal, outboundOfGrpcConnection } from "../memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import type { Route } from "../route.ts";
import type { Tls } from "../tls.ts";
import { BATCH_STREAM_PATH, createBatchStreams } from "./batch-streams.ts";
import { createGrpcListener } from "./listener.ts";
import { createSlowRequests, SessionLifecycle } from "./session-lifecycle.ts";
import { createStandardServices } from "./standard-services.ts";
import { answerUnaryCall, endWithStatus } from "./unary-call.ts";

/** The port for services: native gRPC, with health and reflection. */
export interface GrpcServer {
  /** Listens; resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  /** Sets the status that `grpc.health.v1` reports. */
  setServing(serving: boolean): void;
  /**
   * Sends GOAWAY on all sessions, and cuts the connections that are left after `graceMs`; resolves when none
   * is left.
   */
  close(graceMs: number): Promise<void>;
  /** Returns the number of open connections. */
  connections(): number;
}

export interface GrpcServerOptions extends AddressLimit {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly inboundBudget: InboundBudget;
  readonly outboundTotal: OutboundTotal;
  readonly replyBudget: InboundBudget;
  /** The age at which a connection gets a GOAWAY, ±10 %, so that load spreads to new replicas. */
  readonly connectionAgeMs: number;
  /** The longest time that a request may take to arrive. */
  readonly requestTimeoutMs: number;
  readonly tls: Tls | undefined;
}

/** Longer than the longest wait of a Claim, 60 s. */
const DRAIN_GRACE_MS = 70_000;
const MAX_IDLE_MS = 10 * 60_000;
/** A peer that vanished is found after these two, at the latest. */
const KEEPALIVE_INTERVAL_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
const MAX_HANDSHAKE_MS = 10_000;
/** Enough for a client that doesn't batch; further calls of the connection queue in the client. */
const MAX_CONCURRENT_STREAMS = 2000;
const SESSION_OPTIONS = {
  settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS },
  /** In megabytes. */
  maxSessionMemory: 64,
  // A refusal that names many violations has trailers of more than Node's default, 64 KiB.
  maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
};

/**
 * Serves gRPC on `node:http2` (README.md).
 *
 * @see GrpcServer
 */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { routes, pipeline, requestTimeoutMs, tls } = options;
  const services = [...new Set(routes.map((route) => route.method.parent))];
  const standardServices = createStandardServices(services);
  const routesByPath = new Map(routes.map((route) => [route.path, route]));
  const slowRequests = createSlowRequests({ timeoutMs: requestTimeoutMs });
  const batchStreamsOf = createBatchStreams({ routes, pipeline, timeoutMs: requestTimeoutMs });
  const sessionTimes = {
    maxAgeMs: options.connectionAgeMs,
    maxIdleMs: MAX_IDLE_MS,
    drainGraceMs: DRAIN_GRACE_MS,
    keepaliveIntervalMs: KEEPALIVE_INTERVAL_MS,
    keepaliveTimeoutMs: KEEPALIVE_TIMEOUT_MS,
  };
  const lifecycles = new Set<SessionLifecycle>();
  let draining = false;

  function serve(socket: Socket): void {
    const session = performServerHandshake(socket, SESSION_OPTIONS);
    const connection = {
      pipeline,
      slowRequests,
      inbound: options.inboundBudget.ofConnection(),
      outbound: outboundOfGrpcConnection(options.outboundTotal),
      replies: options.replyBudget.ofConnection(),
      peer: socket.remoteAddress,
    };
    const batchStreams = batchStreamsOf(connection);
    const lifecycle = new SessionLifecycle(session, socket, sessionTimes, batchStreams.leave);
    const standardAnswerTo = standardServices.ofConnection(connection);
    lifecycles.add(lifecycle);
    session.once("close", () => lifecycles.delete(lifecycle));
    // Node closes the session of an error, and its streams.
    session.on("error", () => {});
    session.on("stream", (stream, headers) => {
      lifecycle.streamOpened(stream);
      const path = isGrpcCall(headers) ? headers[":path"] : undefined;
      if (path === BATCH_STREAM_PATH) return batchStreams.answer(stream, headers);
      const route = path === undefined ? undefined : routesByPath.get(path);
      if (route !== undefined) return answerUnaryCall(stream, headers, route, connection);
      slowRequests.watch(stream);
      if (path === undefined) return refuseOtherProtocol(stream);
      const answerStandardCall = standardAnswerTo(path);
      if (answerStandardCall !== undefined) return answerStandardCall(stream, headers);
      forgetWhenClosed(stream);
      endWithStatus(stream, grpcStatus(Code.Unimplemented, "The server does not implement this method."));
    });
    // The connection's TLS handshake was in progress when the server began to drain.
    if (draining) lifecycle.drain();
  }

  const listener = createGrpcListener({
    accept: serve,
    tls,
    maxPerAddress: options.maxPerAddress,
    handshakeTimeoutMs: Math.min(MAX_HANDSHAKE_MS, requestTimeoutMs),
  });

  return {
    listen: listener.listen,
    setServing: standardServices.setServing,
    connections: listener.connections,
    async close(graceMs) {
      const closed = listener.close(graceMs);
      draining = true;
      for (const lifecycle of lifecycles) lifecycle.drain();
      await closed;
      slowRequests.stop();
    },
  };
}

/** Answers as gRPC's protocol says for another method or content type. */
function refuseOtherProtocol(stream: ServerHttp2Stream): void {
  forgetWhenClosed(stream);
  stream.respond({ ":status": 415 }, { endStream: true });
  stream.resume();
}
