import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { Logger } from "pino";
import { Refusal } from "../domain/refusal.ts";
import { FailedCall, toConnectError } from "../transport/errors.ts";
import type { ReadHeader } from "../transport/http/web-page.ts";

/** Returns the reader of a request's headers. */
export function headersOf(request: IncomingMessage): ReadHeader {
  return (name) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
}

/** Answers without a body. */
export function answerEmpty(response: ServerResponse, status: number, headers: Headers = {}): void {
  response.writeHead(status, { "cache-control": "no-store", ...headers });
  response.end();
}

/** Answers with JSON. */
export function answerJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { "cache-control": "no-store", "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Answers with an error as the Connect protocol writes it. A defect is logged under its request id. */
export function answerError(response: ServerResponse, error: unknown, log: Logger): void {
  const failed = failureOf(error, log);
  const shown = toConnectError(failed, "connect");
  const connectError = shown instanceof ConnectError ? shown : new ConnectError("internal", Code.Internal);
  response.writeHead(codeToHttpStatus(connectError.code), {
    ...Object.fromEntries(connectError.metadata),
    "cache-control": "no-store",
    "content-type": "application/json",
  });
  response.end(errorToJsonBytes(connectError, undefined));
}

function failureOf(error: unknown, log: Logger): FailedCall {
  if (error instanceof FailedCall) return error;
  const requestId = randomUUID();
  if (error instanceof Refusal) return new FailedCall(error, requestId);
  log.error({ err: error, requestId }, "a request of the console failed by a defect");
  const metadata = { request_id: requestId };
  return new FailedCall(
    new Refusal("INTERNAL", "An internal error; the server's log has it.", { metadata, cause: error }),
    requestId,
  );
}
