import type { IncomingHttpHeaders } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { IdempotencyService } from "../../../gen/onceward/v1/idempotency_pb.ts";
import { forgetWhenClosed } from "../grpc-protocol.ts";
import type { Pipeline } from "../pipeline.ts";
import type { Route } from "../route.ts";
import { type BatchConnection, BatchStream } from "./batch-stream.ts";

const { batch: BATCH, batchStream: BATCH_STREAM } = IdempotencyService.method;
/** The path of the RPC. */
export const BATCH_STREAM_PATH = `/${IdempotencyService.typeName}/${BATCH_STREAM.name}`;

/** Of a connection. A client needs one, and a second one while the first one ends. */
const MAX_STREAMS = 100;

/** The BatchStreams of a connection. */
export interface BatchStreams {
  /** Answers all batches of a stream. */
  answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /**
   * Ends all streams because the connection drains: each when the batches that arrive within a second are
   * answered.
   */
  leave(): void;
}

export interface BatchStreamsOptions {
  /** Batch must be among them: the pipeline answers each batch as a call of it. */
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  /** How long a message may take to arrive; a stream is closed up to the same time later. */
  readonly timeoutMs: number;
}

/**
 * Returns a function that creates a connection's BatchStreams.
 *
 * A stream saves the cost of HTTP/2 and gRPC for each call: headers, trailers, and a stream's objects on both
 * sides (decisions/0011). The pipeline treats each of its batches as a Batch.
 */
export function createBatchStreams(
  options: BatchStreamsOptions,
): (connection: BatchConnection) => BatchStreams {
  const { pipeline, timeoutMs } = options;
  const route = options.routes.find(({ method }) => method === BATCH);
  if (route === undefined) throw new Error("there is no route for Batch");
  const settings = { route, pipeline, timeoutMs };
  return (connection) => {
    const open = new Set<BatchStream>();
    return {
      answer(stream, headers) {
        forgetWhenClosed(stream);
        if (open.size >= MAX_STREAMS) {
          stream.close(constants.NGHTTP2_REFUSED_STREAM);
          return;
        }
        const opened = new BatchStream(stream, headers, connection, settings);
        open.add(opened);
        stream.once("close", () => open.delete(opened));
      },
      leave() {
        for (const stream of open) stream.leaveSoon();
      },
    };
  };
}
