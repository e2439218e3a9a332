import diagnostics from "node:diagnostics_channel";
import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { Refusal } from "../domain/refusal.ts";
import { StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { toStatus } from "./errors.ts";
import { decode, ENCODING_HEADER, takeEncodingHeader } from "./grpc-encoding.ts";
import { createGrpcListener } from "./grpc-listener.ts";
import type { IncomingCall, Pipeline } from "./pipeline.ts";
import { addReflection } from "./reflection.ts";
import type { Route } from "./route.ts";
import { createSlowRequests } from "./slow-requests.ts";
import { takeTimeoutHeader } from "./timeouts.ts";
import type { Tls } from "./tls.ts";

/** The port for services: native gRPC, with health and reflection. */
export interface GrpcServer {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** What `grpc.health.v1` answers. */
  setServing(serving: boolean): void;
  /** Sends GOAWAY, lets calls finish for so long, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

export interface GrpcServerOptions {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  /** A connection is asked to leave after this, ±10 %, so that load spreads to new replicas. */
  readonly connectionAgeMs: number;
  /** How long a request may take to arrive whole. */
  readonly requestTimeoutMs: number;
  readonly tls: Tls | undefined;
}

/**
 * Messages up to this size are read, so that one that is over the contract's limit is told so with all details; a larger
 * one is refused by the transport (RESOURCE_EXHAUSTED), before it is read.
 */
export const MAX_READ_BYTES = 2 * MAX_MESSAGE_BYTES;
/** A connection that has been asked to leave is closed after this: longer than a wait. */
const CONNECTION_AGE_GRACE_MS = 70_000;
const CONNECTION_IDLE_MS = 10 * 60_000;
/** A client that connects and says nothing. */
const MAX_HANDSHAKE_MS = 10_000;
/** A peer that vanished without a word is found out within these two. */
const KEEPALIVE_TIME_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** Enough for a client that doesn't batch; more than this from one connection queues in the client. */
const MAX_CONCURRENT_STREAMS = 2000;
/** In megabytes, per connection. */
const MAX_SESSION_MEMORY_MB = 64;

// grpc-js prints headers that it can't take, with their values, past the log: a credential may be among them.
grpc.setLogVerbosity(grpc.logVerbosity.NONE);

/** @see GrpcServer */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { routes, pipeline, connectionAgeMs, requestTimeoutMs, tls } = options;
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_READ_BYTES,
    "grpc.max_send_message_length": MAX_READ_BYTES,
    "grpc.max_concurrent_streams": MAX_CONCURRENT_STREAMS,
    "grpc.max_connection_age_ms": connectionAgeMs,
    "grpc.max_connection_age_grace_ms": CONNECTION_AGE_GRACE_MS,
    "grpc.max_connection_idle_ms": CONNECTION_IDLE_MS,
    "grpc.keepalive_time_ms": KEEPALIVE_TIME_MS,
    "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
    "grpc-node.max_session_memory": MAX_SESSION_MEMORY_MB,
    "grpc.enable_channelz": 0,
  });
  const health = new HealthImplementation({ "": "NOT_SERVING" });
  for (const [service, ofService] of Map.groupBy(routes, (route) => route.method.parent.typeName)) {
    server.addService(definitionOf(ofService), handlersOf(ofService, pipeline));
    health.setStatus(service, "NOT_SERVING");
  }
  health.addToServer(server);
  addReflection(
    server,
    routes.map((route) => route.method.parent),
  );
  const paths = new Set<unknown>(routes.map((route) => route.path));
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const listener = createGrpcListener({
    accept: (socket) => injector.injectConnection(socket),
    tls,
    handshakeTimeoutMs: Math.min(MAX_HANDSHAKE_MS, requestTimeoutMs),
  });
  const slowRequests = createSlowRequests({
    timeoutMs: requestTimeoutMs,
    isOurs: (stream) => stream.session?.socket.localPort === listener.port(),
  });
  const onStreamCreated = (message: unknown) => {
    const { stream, headers } = message as StreamCreated;
    takeTimeoutHeader(headers);
    takeEncodingHeader(headers, paths.has(headers[":path"]));
    slowRequests.watch(stream);
  };
  diagnostics.subscribe(STREAM_CREATED, onStreamCreated);

  return {
    listen: listener.listen,
    setServing(serving) {
      const status = serving ? "SERVING" : "NOT_SERVING";
      for (const service of new Set(["", ...routes.map((route) => route.method.parent.typeName)])) {
        health.setStatus(service, status);
      }
    },
    async close(graceMs) {
      const closed = listener.close(graceMs);
      // Sends GOAWAY. It doesn't wait for connections that it didn't accept itself.
      server.tryShutdown(() => {});
      await closed;
      diagnostics.unsubscribe(STREAM_CREATED, onStreamCreated);
      slowRequests.stop();
    },
  };
}

/** Published by Node before grpc-js sees a stream. https://nodejs.org/api/diagnostics_channel.html */
const STREAM_CREATED = "http2.server.stream.created";

interface StreamCreated {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** Messages stay bytes in grpc-js: the pipeline parses them, so that a malformed one is the caller's error. */
function definitionOf(routes: readonly Route[]): grpc.ServiceDefinition {
  return Object.fromEntries(
    routes.map(({ method, path }) => [
      method.name,
      {
        path,
        requestStream: false,
        responseStream: false,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    ]),
  );
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

function handlersOf(routes: readonly Route[], pipeline: Pipeline): grpc.UntypedServiceImplementation {
  return Object.fromEntries(routes.map((route) => [route.method.name, handlerOf(route, pipeline)]));
}

function handlerOf(route: Route, pipeline: Pipeline): grpc.handleUnaryCall<Buffer, Buffer> {
  return (call, callback) => {
    const encode = (reply: Message) => serialize(route, reply);
    pipeline(route, new IncomingGrpcCall(route, call), encode).then(
      (reply) => callback(null, reply),
      (error: unknown) => callback(toServiceError(error)),
    );
  };
}

function serialize({ method }: Route, reply: Message): Buffer {
  const bytes = toBinary(method.output, reply);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function toServiceError(error: unknown): grpc.StatusObject {
  if (!(error instanceof Refusal)) throw error;
  const status = toStatus(error);
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
  return { code: status.code, details: status.message, metadata };
}

class IncomingGrpcCall implements IncomingCall {
  readonly #route: Route;
  readonly #call: grpc.ServerUnaryCall<Buffer, Buffer>;
  #controller: AbortController | undefined;

  constructor(route: Route, call: grpc.ServerUnaryCall<Buffer, Buffer>) {
    this.#route = route;
    this.#call = call;
  }

  header(name: string): string | undefined {
    return this.#call.metadata.get(name)[0]?.toString();
  }

  get messageBytes(): number {
    return this.#call.request.byteLength;
  }

  read(): Message {
    const message = decode(this.#call.request, this.header(ENCODING_HEADER), MAX_MESSAGE_BYTES);
    return fromBinary(this.#route.method.input, message);
  }

  get cancelled(): boolean {
    return this.#call.cancelled;
  }

  /** Made when somebody asks: few calls wait for anything but the database. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      if (this.#call.cancelled) controller.abort();
      else this.#call.once("cancelled", () => controller.abort());
      this.#controller = controller;
    }
    return this.#controller.signal;
  }
}
