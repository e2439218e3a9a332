import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import type { Principal } from "../../domain/tenant.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { Release } from "../bounds/memory-budgets.ts";
import { ProtocolError } from "../errors.ts";
import { createMessageSplitter } from "../receive/read-body.ts";
import type { Route } from "../route.ts";
import { frameAnswer, frameRefusal, IncomingBatch, readEnvelope } from "./batch-messages.ts";
import {
  beginAnswer,
  failureStatus,
  GRPC_HEADERS,
  type GrpcStatus,
  grpcStatus,
  isClosed,
  MAX_FRAMED_BYTES,
  OK,
  StreamHead,
} from "./protocol.ts";
import type { GrpcConnection } from "./session.ts";

/** Of a connection. A client needs one, and a second one while the first one ends. */
const MAX_STREAMS = 100;

/** Messages of a stream are not decompressed: their sender would not be authenticated yet. */
const HEADERS = { ...GRPC_HEADERS, "grpc-accept-encoding": "identity" };
/** Batches of a stream; further ones are not read, and stay in the windows of HTTP/2. */
const MAX_IN_FLIGHT = 16;
/** A client whose stream was silent for so long opens another one when it needs it. */
const MAX_IDLE_MS = 30_000;
/**
 * The time that a client has to end its side after the GOAWAY, so that batches it had sent before are
 * answered.
 */
const LEAVE_MS = 1000;

/** What the BatchStreams of a connection share. */
export type BatchConnection = Pick<GrpcConnection, "pipeline" | "inbound" | "outbound" | "peer" | "inTurn">;

/**
 * Answers the batches of one stream, in the order in which they complete. It reads no further while too many
 * batches or answers are in flight. After `#end`, it answers the batches in flight and then ends the stream.
 */
class BatchStream {
  readonly #stream: ServerHttp2Stream;
  readonly #head: StreamHead;
  readonly #connection: BatchConnection;
  /** That of Batch. */
  readonly #route: Route;
  /** How long a message may take to arrive. */
  readonly #timeoutMs: number;
  readonly #messages = createMessageSplitter(MAX_FRAMED_BYTES);
  readonly #timer: NodeJS.Timeout;
  /** When the last message arrived or was answered. */
  #activeAtMs = performance.now();
  #leaveTimer: NodeJS.Timeout | undefined;
  #inFlight = 0;
  #inFlightBytes = 0;
  /** The memory that is reserved for a partial message; a promise while its sender waits for it. */
  #reservation: Release | Promise<Release> | undefined;
  /** Drops the batch that waits for its address' turn; undefined if none does. */
  #dropWaiting: (() => void) | undefined;
  /** The status with which the stream ends when no batch is in flight; undefined while it accepts batches. */
  #status: GrpcStatus | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: BatchConnection,
    route: Route,
    timeoutMs: number,
  ) {
    this.#stream = stream;
    this.#head = new StreamHead(stream, headers, connection.peer);
    this.#connection = connection;
    this.#route = route;
    this.#timeoutMs = timeoutMs;
    this.#timer = setInterval(() => this.#endIfIdle(), timeoutMs).unref();
    stream.on("close", () => {
      clearInterval(this.#timer);
      clearTimeout(this.#leaveTimer);
      this.#dropWaiting?.();
      this.#release();
    });
    const authenticated = connection.pipeline.authenticate(route, this.#head);
    authenticated.then((principal) => this.#listen(principal), this.#refuse);
  }

  /** Ends the stream when the batches that arrive within a second are answered. */
  leaveSoon(): void {
    this.#leaveTimer ??= setTimeout(() => this.#end(OK), LEAVE_MS).unref();
  }

  /** Begins to read; before the caller is authenticated, nothing is read of the stream. */
  #listen(principal: Principal): void {
    if (isClosed(this.#stream)) return;
    this.#stream.on("data", (chunk: Buffer) => {
      // After #end, the rest is read and dropped, so that its sender gets to the status.
      if (this.#status !== undefined) return;
      this.#messages.push(chunk);
      this.#answerMessages();
      this.#reserve(principal);
    });
    this.#stream.on("drain", () => this.#answerMessages());
    this.#stream.on("end", () => this.#end(OK));
  }

  /** Ends the stream with the refusal of its headers, or of a message that there is no memory for. */
  readonly #refuse = (failure: unknown) => {
    this.#end(failureStatus(failure));
    this.#stream.resume();
  };

  /** Reserves memory for the rest of a partial message, and reads no further until there is enough. */
  #reserve(principal: Principal): void {
    const bytes = this.#messages.partialMessageBytes();
    if (bytes === undefined || this.#reservation !== undefined || this.#status !== undefined) return;
    try {
      const reservation = this.#connection.inbound.reserve(principal, bytes);
      this.#reservation = reservation;
      if (!(reservation instanceof Promise)) return;
      this.#stream.pause();
      reservation.then(this.#reserved, this.#refuse);
    } catch (error) {
      this.#refuse(error);
    }
  }

  readonly #reserved = (release: Release) => {
    if (isClosed(this.#stream)) {
      release();
      return;
    }
    this.#reservation = release;
    this.#answerMessages();
  };

  #release(): void {
    if (typeof this.#reservation === "function") this.#reservation();
    this.#reservation = undefined;
  }

  /** Hands complete messages to the pipeline, up to the limits in flight; pauses the stream at a limit. */
  #answerMessages(): void {
    try {
      while (this.#status === undefined && !this.#isBusy()) {
        const message = this.#messages.next();
        if (message === undefined) break;
        this.#answerMessage(message);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end(grpcStatus(error.code, error.message));
    }
    if (this.#status === undefined && this.#isBusy()) this.#stream.pause();
    else if (this.#stream.isPaused()) this.#stream.resume();
  }

  #isBusy(): boolean {
    return (
      this.#inFlight >= MAX_IN_FLIGHT ||
      this.#inFlightBytes >= MAX_MESSAGE_BYTES ||
      this.#stream.writableLength >= MAX_MESSAGE_BYTES ||
      this.#reservation instanceof Promise ||
      this.#dropWaiting !== undefined
    );
  }

  /** @throws ProtocolError if the message has no id to answer it under. */
  #answerMessage(message: Buffer): void {
    const route = this.#route;
    const envelope = readEnvelope(message);
    const { id } = envelope;
    this.#activeAtMs = performance.now();
    this.#inFlight++;
    this.#inFlightBytes += message.byteLength;
    const batch = new IncomingBatch(this.#head, message, envelope);
    // While a batch waits, its memory stays reserved, and nothing more is read.
    this.#dropWaiting = this.#connection.inTurn(() => {
      const hasWaited = this.#dropWaiting !== undefined;
      this.#dropWaiting = undefined;
      this.#release();
      if (isClosed(this.#stream)) return;
      this.#connection.pipeline
        .answer(route, batch, (reply) =>
          isClosed(this.#stream) ? undefined : frameAnswer(id, route.method.output, reply),
        )
        .then(
          (answer) => this.#write(message, answer),
          (error: unknown) => this.#write(message, frameRefusal(id, error)),
        )
        .catch(this.#refuse);
      if (hasWaited) this.#answerMessages();
    });
  }

  #write(message: Buffer, answer: Buffer | undefined): void {
    this.#inFlight--;
    this.#inFlightBytes -= message.byteLength;
    if (answer === undefined || isClosed(this.#stream)) return;
    this.#sendHeaders();
    const { outbound } = this.#connection;
    outbound.write(this.#stream, answer);
    if (outbound.isExhausted()) {
      this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#activeAtMs = performance.now();
    this.#endIfAnswered();
    this.#answerMessages();
  }

  #endIfIdle(): void {
    if (this.#inFlight > 0 || this.#isBusy()) return;
    const idleMs = performance.now() - this.#activeAtMs;
    const isIncomplete = this.#messages.hasPartialMessage() || this.#status !== undefined;
    if (isIncomplete && idleMs >= this.#timeoutMs) this.#stream.close(constants.NGHTTP2_CANCEL);
    else if (idleMs >= MAX_IDLE_MS) this.#end(OK);
  }

  #end(status: GrpcStatus): void {
    this.#status ??= status;
    this.#endIfAnswered();
  }

  #endIfAnswered(): void {
    if (this.#status === undefined || this.#inFlight > 0 || isClosed(this.#stream)) return;
    this.#sendHeaders();
    this.#stream.end();
  }

  #sendHeaders(): void {
    if (this.#stream.headersSent) return;
    beginAnswer(this.#stream, () => ({ ...this.#status }), HEADERS);
  }
}

/** The BatchStreams of a connection. */
export type BatchStreams = ReturnType<ReturnType<typeof createBatchStreams>>;

/**
 * Returns a function that creates a connection's BatchStreams.
 *
 * A stream saves the cost of HTTP/2 and gRPC for each call: headers, trailers, and a stream's objects on both
 * sides (decisions/0011). The pipeline treats each of its batches as a Batch.
 *
 * @param routes Batch must be among them: the pipeline answers each batch as a call of it.
 * @param timeoutMs How long a message may take to arrive; a stream is closed up to the same time later.
 */
export function createBatchStreams(routes: readonly Route[], timeoutMs: number) {
  const route = routes.find(({ method }) => method === IdempotencyService.method.batch);
  if (route === undefined) throw new Error("there is no route for Batch");
  return (connection: BatchConnection) => {
    const open = new Set<BatchStream>();
    return {
      /** Answers all batches of a stream. */
      answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
        if (open.size >= MAX_STREAMS) {
          stream.close(constants.NGHTTP2_REFUSED_STREAM);
          return;
        }
        const opened = new BatchStream(stream, headers, connection, route, timeoutMs);
        open.add(opened);
        stream.once("close", () => open.delete(opened));
      },
      /**
       * Ends all streams because the connection drains: each when the batches that arrive within a second are
       * answered.
       */
      leave(): void {
        for (const stream of open) stream.leaveSoon();
      },
    };
  };
}
