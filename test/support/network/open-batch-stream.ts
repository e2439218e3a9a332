import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  BatchStreamRequestSchema,
  type BatchStreamResponse,
  BatchStreamResponseSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { MessageSplitter } from "../../../clients/typescript/src/wire/grpc-messages.ts";
import { framed, grpcHeaders } from "./raw-grpc.ts";

/** A BatchStream that a test uses message by message, as a client in any language may. */
export interface OpenBatchStream {
  readonly stream: ClientHttp2Stream;
  /** The answers, in the order of their arrival. */
  readonly answers: readonly BatchStreamResponse[];
  send(request: MessageInitShape<typeof BatchStreamRequestSchema>): void;
  /** Resolves with the answer to a batch. */
  answerTo(id: number): Promise<BatchStreamResponse>;
  /**
   * Resolves when the stream has closed, with the name of its status, or with `RESET` and the code's number.
   */
  readonly ended: Promise<string>;
}

/** Opens a stream. The client's side stays open until the test ends it. */
export function openBatchStream(session: ClientHttp2Session, apiKey: string | undefined): OpenBatchStream {
  const stream = session.request(grpcHeaders("BatchStream", apiKey), { endStream: false });
  const answers: BatchStreamResponse[] = [];
  let status: string | undefined;
  const messages = new MessageSplitter();
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    messages.push(chunk);
    for (let message = messages.next(); message !== undefined; message = messages.next())
      answers.push(fromBinary(BatchStreamResponseSchema, message));
    stream.emit("answered");
  });
  const read = (headers: IncomingHttpHeaders) => {
    const code = headers["grpc-status"];
    if (code !== undefined) status = code === "0" ? "OK" : Code[Number(code)];
  };
  stream.on("response", read);
  stream.on("trailers", read);
  // A client that has the status sends nothing more.
  stream.on("end", () => stream.end());
  // `once` of node:events would reject with an error of the stream.
  const next = (event: string) => new Promise((resolve) => stream.once(event, resolve));
  const closed = next("close");
  return {
    stream,
    answers,
    send(request) {
      stream.write(framed(BatchStreamRequestSchema, request));
    },
    async answerTo(id) {
      for (;;) {
        const answer = answers.find((one) => one.id === id);
        if (answer !== undefined) return answer;
        if (stream.closed || stream.destroyed) throw new Error(`batch ${id} was not answered`);
        await Promise.race([next("answered"), closed]);
      }
    },
    ended: closed.then(() => status ?? `RESET ${stream.rstCode}`),
  };
}
