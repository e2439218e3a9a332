import type { ServerHttp2Stream } from "node:http2";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { OutboundBudget } from "../bounds/memory-budgets.ts";
import { ProtocolError } from "../errors.ts";
import { createMessageReader, frameMessage } from "../receive/read-body.ts";
import { beginAnswer, endWithStatus, grpcStatus, isClosed, unreadableStatus } from "./protocol.ts";

/** A request is the name of a service. */
const MAX_REQUEST_BYTES = 1024;
/** Each watch is an open stream without a credential: a balancer needs one, and a client one for each service. */
const MAX_WATCHES_PER_CONNECTION = 16;
/** Of a process: one for each connection that a port takes. */
const MAX_WATCHES = 10_000;

/**
 * grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md), without a credential: balancers
 * have none. Statuses say whether the replica accepts calls.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  /** All open watches: those whose request has not arrived, and those of unknown services, among them. */
  readonly #watches = new Set<ServerHttp2Stream>();
  /** The streams to which changes are sent. */
  readonly #watchers = new Set<ServerHttp2Stream>();
  #status: Status = Status.NOT_SERVING;

  /** @param services The names of the services with a status; the server itself is the empty name. */
  constructor(services: readonly string[]) {
    this.#names = new Set(["", ...services]);
  }

  /** Sets the status of the server and of each service, and sends it to those who watch a service. */
  setServing(serving: boolean): void {
    const status = serving ? Status.SERVING : Status.NOT_SERVING;
    if (status === this.#status) return;
    this.#status = status;
    for (const stream of this.#watchers) stream.write(checkResponse(status));
  }

  /** Answers a call of Check. */
  check(stream: ServerHttp2Stream, outbound: OutboundBudget): void {
    readService(stream, (service) => {
      if (this.#names.has(service)) reply(stream, outbound, checkResponse(this.#status));
      else endWithStatus(stream, grpcStatus(Code.NotFound, "The server has no service of this name."));
    });
  }

  /** Answers a call of List, whose request has no field. */
  list(stream: ServerHttp2Stream, outbound: OutboundBudget): void {
    readService(stream, () => {
      const statuses: MessageInitShape<typeof HealthListResponseSchema>["statuses"] = {};
      for (const name of this.#names) statuses[name] = { status: this.#status };
      const response = create(HealthListResponseSchema, { statuses });
      reply(stream, outbound, frameMessage(toBinary(HealthListResponseSchema, response)));
    });
  }

  /**
   * Answers a call of Watch: the status now, and each change. The watch of an unknown service gets SERVICE_UNKNOWN and
   * stays open: no service is added later.
   *
   * @param watchesOfConnection The watches of the stream's connection.
   */
  watch(stream: ServerHttp2Stream, watchesOfConnection: Set<ServerHttp2Stream>): void {
    if (watchesOfConnection.size >= MAX_WATCHES_PER_CONNECTION || this.#watches.size >= MAX_WATCHES) {
      endWithStatus(stream, grpcStatus(Code.ResourceExhausted, "There are too many watches."));
      return;
    }
    watchesOfConnection.add(stream);
    this.#watches.add(stream);
    stream.once("close", () => {
      watchesOfConnection.delete(stream);
      this.#watches.delete(stream);
      this.#watchers.delete(stream);
    });
    readService(stream, (service) => {
      beginAnswer(stream);
      if (!this.#names.has(service)) {
        stream.write(checkResponse(Status.SERVICE_UNKNOWN));
        return;
      }
      this.#watchers.add(stream);
      stream.write(checkResponse(this.#status));
    });
  }
}

function checkResponse(status: Status): Buffer {
  return frameMessage(toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status })));
}

/** Reads the one message of a request, and calls back with its service; ends the stream if it is not a request. */
function readService(stream: ServerHttp2Stream, answer: (service: string) => void): void {
  const reader = createMessageReader(MAX_REQUEST_BYTES);
  const orRefuse = (read: () => void) => {
    if (isClosed(stream) || stream.headersSent) return;
    try {
      read();
    } catch (error) {
      const invalid = `A request has at most ${MAX_REQUEST_BYTES} bytes of a valid message.`;
      endWithStatus(stream, unreadableStatus(error, invalid));
    }
  };
  stream.on("data", (chunk: Buffer) => orRefuse(() => reader.push(chunk)));
  stream.on("end", () =>
    orRefuse(() => {
      const { message, compressed } = reader.end();
      if (compressed) throw new ProtocolError(Code.Unimplemented, "Requests of health can't be compressed.");
      answer(fromBinary(HealthCheckRequestSchema, message).service);
    }),
  );
}

function reply(stream: ServerHttp2Stream, outbound: OutboundBudget, message: Buffer): void {
  if (outbound.isExhausted()) {
    endWithStatus(stream, grpcStatus(Code.Unavailable, "There are too many replies that were not read."));
    return;
  }
  outbound.countUntilClosed(stream, message.byteLength);
  beginAnswer(stream);
  stream.end(message);
}
