import type { IncomingHttpHeaders } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { Principal } from "../../domain/tenant.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { ConnectionBytes, GiveBack } from "../arriving-bytes.ts";
import { toStatus } from "../errors.ts";
import { createMessageSplitter, MAX_READ_BYTES, MessageRefused } from "../grpc-messages.ts";
import type { CallHead, IncomingCall, Pipeline } from "../pipeline.ts";
import type { ReceivedMessage } from "../read-message.ts";
import type { Route } from "../route.ts";
import type { UnreadReplies } from "../unread-replies.ts";
import { frameAnswer, frameRefusal, readEnvelope } from "./batch-envelopes.ts";
import {
  firstOf,
  forgetWhenClosed,
  GRPC_HEADERS,
  type GrpcStatus,
  grpcStatus,
  isOver,
  OK,
} from "./streams.ts";

const { batch: BATCH, batchStream: BATCH_STREAM } = IdempotencyService.method;
/** The path of the RPC. */
export const BATCH_STREAM_PATH = `/${IdempotencyService.typeName}/${BATCH_STREAM.name}`;

/** Messages are taken as they come: no compressed one is. */
const HEADERS = { ...GRPC_HEADERS, "grpc-accept-encoding": "identity" };
/** Of a stream: more are left unread, in the windows of HTTP/2. */
const MAX_UNDER_WAY = 16;
/** Of a connection; a client needs one, and another while the first one ends. */
const MAX_STREAMS = 100;
/** A client that sends nothing for so long opens another stream when it has something to send. */
const IDLE_MS = 30_000;
/** How long a client has to end its side after the GOAWAY, so that nothing crosses on the way. */
const LEAVING_MS = 1000;

/** The BatchStreams of a server. */
export interface BatchStreams {
  /** @returns what answers all batches of a stream, for the streams of a connection. */
  ofConnection(
    connection: BatchConnection,
  ): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
  /** Ends them, because all connections are to end: each when all that came within a second is answered. */
  leave(): void;
}

/** What the streams of a connection share. */
export interface BatchConnection {
  readonly arriving: ConnectionBytes;
  readonly unread: UnreadReplies;
}

export interface BatchStreamsOptions {
  /** Batch is among them: each message is put to it as a call of its own. */
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  /** How long a message may take to arrive whole; a stream is ended up to as much later. */
  readonly timeoutMs: number;
}

/**
 * A stream saves what HTTP/2 and gRPC cost for each call, headers, trailers, and a stream's own objects on both sides
 * (`server/decisions/0011-batches-on-a-stream.md`). What each of its batches goes through is the same as for a Batch.
 *
 * @see BatchStreams
 */
export function createBatchStreams(options: BatchStreamsOptions): BatchStreams {
  const { pipeline, timeoutMs } = options;
  const route = options.routes.find(({ method }) => method === BATCH);
  if (route === undefined) throw new Error("nothing answers Batch");
  const terms = { route, pipeline, timeoutMs };
  const open = new Set<BatchStream>();
  return {
    ofConnection(connection) {
      let count = 0;
      return (stream, headers) => {
        forgetWhenClosed(stream);
        if (count >= MAX_STREAMS) {
          stream.close(constants.NGHTTP2_REFUSED_STREAM);
          return;
        }
        const opened = new BatchStream(stream, headers, connection, terms);
        count++;
        open.add(opened);
        stream.once("close", () => {
          count--;
          open.delete(opened);
        });
      };
    },
    leave() {
      for (const stream of open) stream.leaveSoon();
    },
  };
}

interface Terms extends Pick<BatchStreamsOptions, "pipeline" | "timeoutMs"> {
  readonly route: Route;
}

class BatchStream {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #connection: BatchConnection;
  readonly #terms: Terms;
  readonly #messages = createMessageSplitter(MAX_READ_BYTES);
  readonly #timer: NodeJS.Timeout;
  /** When a message came or was answered last. */
  #activeAtMs = performance.now();
  #leavingTimer: NodeJS.Timeout | undefined;
  #underWay = 0;
  #bytesUnderWay = 0;
  /** What is set aside for the message that has begun to come; a promise: its sender waits for it. */
  #room: GiveBack | Promise<GiveBack> | undefined;
  /** With what the stream ends once nothing is under way; undefined: it goes on. */
  #status: GrpcStatus | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: BatchConnection,
    terms: Terms,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#connection = connection;
    this.#terms = terms;
    this.#timer = setInterval(() => this.#look(), terms.timeoutMs).unref();
    stream.on("close", () => {
      clearInterval(this.#timer);
      clearTimeout(this.#leavingTimer);
      this.#giveRoomBack();
    });
    const head = new StreamHead(stream, headers);
    terms.pipeline.authenticate(terms.route, head).then((principal) => this.#listen(principal), this.#refuse);
  }

  /** Until it is known who opened the stream, nothing is read of it. */
  #listen(principal: Principal): void {
    if (isOver(this.#stream)) return;
    this.#stream.on("data", (chunk: Buffer) => {
      // What comes once it is to end is read and dropped, so that its sender gets to the status.
      if (this.#status !== undefined) return;
      this.#messages.push(chunk);
      this.#takeMessages();
      this.#askForRoom(principal);
    });
    this.#stream.on("drain", () => this.#takeMessages());
    this.#stream.on("end", () => this.#end(OK));
  }

  readonly #refuse = (error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
    const status = toStatus(error);
    this.#end(grpcStatus(status.code, status.message, status));
    this.#stream.resume();
  };

  leaveSoon(): void {
    this.#leavingTimer ??= setTimeout(() => this.#end(OK), LEAVING_MS).unref();
  }

  /** A message of which a part has come has room for the rest first; its sender waits meanwhile. */
  #askForRoom(principal: Principal): void {
    const bytes = this.#messages.wantedBytes();
    if (bytes === undefined || this.#room !== undefined || this.#status !== undefined) return;
    try {
      const room = this.#connection.arriving.reserve(principal, bytes);
      this.#room = room;
      if (!(room instanceof Promise)) return;
      this.#stream.pause();
      room.then(this.#goOn, this.#refuse);
    } catch (error) {
      this.#refuse(error);
    }
  }

  readonly #goOn = (giveBack: GiveBack) => {
    if (isOver(this.#stream)) {
      giveBack();
      return;
    }
    this.#room = giveBack;
    this.#takeMessages();
  };

  #giveRoomBack(): void {
    if (typeof this.#room === "function") this.#room();
    this.#room = undefined;
  }

  /** Of what has come, as much as may be under way; the rest of it waits, and its sender too. */
  #takeMessages(): void {
    try {
      while (this.#status === undefined && !this.#isBusy()) {
        const message = this.#messages.next();
        if (message === undefined) break;
        this.#giveRoomBack();
        this.#take(message);
      }
    } catch (error) {
      if (!(error instanceof MessageRefused)) throw error;
      this.#end(grpcStatus(error.code, error.message));
    }
    if (this.#status === undefined && this.#isBusy()) this.#stream.pause();
    else if (this.#stream.isPaused()) this.#stream.resume();
  }

  #isBusy(): boolean {
    return (
      this.#underWay >= MAX_UNDER_WAY ||
      this.#bytesUnderWay >= MAX_MESSAGE_BYTES ||
      this.#stream.writableLength >= MAX_MESSAGE_BYTES ||
      this.#room instanceof Promise
    );
  }

  /** @throws MessageRefused if it can't be answered. */
  #take(message: Buffer): void {
    const { route, pipeline } = this.#terms;
    const { id, timeoutMs } = readEnvelope(message);
    // Its age was reached: grpc-js has sent the GOAWAY.
    if (this.#stream.session?.closed === true) this.leaveSoon();
    this.#activeAtMs = performance.now();
    this.#underWay++;
    this.#bytesUnderWay += message.byteLength;
    const batch = new IncomingBatch(this.#stream, this.#headers, message, timeoutMs);
    pipeline
      .answer(route, batch, (reply) =>
        isOver(this.#stream) ? undefined : frameAnswer(id, route.method.output, reply),
      )
      .then(
        (answer) => this.#answer(message, answer),
        (error: unknown) => this.#answer(message, frameRefusal(id, error)),
      );
  }

  #answer(message: Buffer, answer: Buffer | undefined): void {
    this.#underWay--;
    this.#bytesUnderWay -= message.byteLength;
    if (answer === undefined || isOver(this.#stream)) return;
    this.#begin();
    const { unread } = this.#connection;
    unread.write(this.#stream, answer);
    if (unread.isFull()) {
      this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#activeAtMs = performance.now();
    this.#endIfDone();
    this.#takeMessages();
  }

  #look(): void {
    if (this.#underWay > 0 || this.#isBusy()) return;
    const quietMs = performance.now() - this.#activeAtMs;
    const unfinished = this.#messages.isAmidst() || this.#status !== undefined;
    if (unfinished && quietMs >= this.#terms.timeoutMs) this.#stream.close(constants.NGHTTP2_CANCEL);
    else if (quietMs >= IDLE_MS) this.#end(OK);
  }

  #end(status: GrpcStatus): void {
    this.#status ??= status;
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#status === undefined || this.#underWay > 0 || isOver(this.#stream)) return;
    this.#begin();
    this.#stream.end();
  }

  #begin(): void {
    if (this.#stream.headersSent) return;
    this.#stream.respond(HEADERS, { waitForTrailers: true });
    this.#stream.on("wantTrailers", () => this.#stream.sendTrailers({ ...this.#status }));
  }
}

class StreamHead implements CallHead {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream;
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    // A request id for all batches would name none.
    return name === "x-request-id" ? undefined : firstOf(this.#headers[name]);
  }

  get cancelled(): boolean {
    return isOver(this.#stream);
  }
}

class IncomingBatch extends StreamHead implements IncomingCall {
  readonly #message: Buffer;
  readonly timeoutMs: number | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    message: Buffer,
    timeoutMs: number | undefined,
  ) {
    super(stream, headers);
    this.#message = message;
    this.timeoutMs = timeoutMs;
  }

  /** What a BatchRequest doesn't have of it is skipped, as unknown fields are. */
  receive(): ReceivedMessage {
    return { bytes: this.#message, format: "binary", compression: undefined };
  }

  get signal(): AbortSignal {
    throw new Error("nothing in a batch waits for its caller to leave");
  }
}
