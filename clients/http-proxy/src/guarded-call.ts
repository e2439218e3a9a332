import type { IncomingMessage } from "node:http";
import type { Claim } from "@onceward/client";
import { type Handled, NoEffectError, OutcomeUnknownError } from "@onceward/client/http";
import { endToEnd, OWN_HEADERS, pairsOf, statusText, TRACE_HEADERS } from "./headers.ts";
import type { Ending } from "./metrics.ts";
import type { Upstream } from "./upstream.ts";

/** A guarded request, read whole. */
export interface GuardedCall {
  readonly incoming: IncomingMessage;
  readonly body: Buffer;
  readonly timeoutMs: number;
  /** The trace context of the request's span, which replaces the client's; undefined: without tracing. */
  readonly traceHeaders: readonly string[] | undefined;
  /** Gets how the call ended, if the guard has called the upstream service. */
  readonly report: (ending: Ending) => void;
}

/** The upstream service's response. */
export interface UpstreamResponse {
  readonly status: number;
  readonly statusMessage: string;
  /** Names and values by turns, without those of the connection and of the length. */
  readonly headers: readonly string[];
  /** The body as far as it was read. */
  readonly read: Buffer;
  /** The rest of a body that is too large for a result; undefined: all of it was read. */
  readonly rest: IncomingMessage | undefined;
}

/** What the upstream service gets of a claim, and whether the claim still lasts. */
type SentClaim = Pick<Claim, "begin" | "signal" | "deriveKey" | "fencingToken" | "attempt">;

/** Headers that the proxy writes itself, or that belong to a body that is sent in pieces. */
const REPLACED = ["expect", "transfer-encoding", "content-length", "trailer"];
/** The largest result that any policy stores. */
const MAX_STORED_BYTES = 1024 * 1024;

/** The upstream service was not called. */
export class NotSentError extends NoEffectError {
  override readonly name = "NotSentError";
}

/**
 * Calls the upstream service, on a connection of its own, so that an error before the connection exists means that nothing was
 * sent.
 *
 * @throws NotSentError if nothing was sent, also because the claim was lost until then. OutcomeUnknownError if the connection
 *   broke or the time ended afterwards, or if the answer is not a response.
 */
export function callUpstream(
  upstream: Upstream,
  call: GuardedCall,
  claim: SentClaim | undefined,
): Promise<Handled<UpstreamResponse>> {
  const { incoming, body, timeoutMs, traceHeaders } = call;
  const replaced = traceHeaders === undefined ? REPLACED : [...REPLACED, ...TRACE_HEADERS];
  const headers = [
    ...endToEnd(incoming.rawHeaders, replaced),
    ...(traceHeaders ?? []),
    ...["content-length", String(body.byteLength)],
    ...(claim === undefined ? [] : ownHeaders(claim)),
  ];
  const request = upstream.send(incoming, headers, "own");
  let isSent = false;
  const send = async () => {
    await claim?.begin();
    // Meanwhile the lease may have ended, and another proxy may have sent its request.
    if (claim?.signal.aborted) throw new Error("the claim was lost before the request was sent");
    if (request.destroyed) return;
    isSent = true;
    request.end(body);
  };
  request.once("socket", (socket) => {
    // A service whose certificate is refused gets nothing.
    const connected = "encrypted" in socket ? "secureConnect" : "connect";
    socket.once(connected, () => send().catch((error) => request.destroy(error)));
  });
  const timer = setTimeout(
    () => request.destroy(new Error(`no whole response in ${timeoutMs} ms`)),
    timeoutMs,
  );
  request.once("close", () => clearTimeout(timer));
  call.report("ran");
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) => {
      call.report(isSent ? "unknown" : "unreachable");
      if (isSent) reject(new OutcomeUnknownError("The upstream service broke off.", { cause }));
      else reject(new NotSentError("The upstream service is unreachable.", { cause }));
    };
    request.on("error", fail);
    // Without a listener, Node ends the connection and reports nothing.
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      fail(new Error("the service switches protocols, which the request did not ask for"));
    });
    request.on("response", (response) => {
      const { statusCode: status = 0 } = response;
      if (!isSent) request.destroy(new Error("the service answered before the request was sent"));
      else if (status >= 200 && status <= 599) readResponse(response, resolve, fail);
      else request.destroy(new Error(`the status ${status} ends no request`));
    });
  });
}

/** Reads a response, at most one chunk beyond the largest result. An error is also reported once the rest is being sent. */
function readResponse(
  response: IncomingMessage,
  resolve: (handled: Handled<UpstreamResponse>) => void,
  fail: (cause: unknown) => void,
): void {
  const { statusCode: status = 0 } = response;
  const statusMessage = statusText(response);
  const headers = endToEnd(response.rawHeaders, ["transfer-encoding", "trailer", "content-length"]);
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  const end = (rest: IncomingMessage | undefined) => {
    const read = Buffer.concat(chunks);
    const sent = { status, statusMessage, headers, read, rest };
    resolve({ status, headers: pairsOf(headers), body: rest === undefined ? read : undefined, sent });
  };
  const keep = (chunk: Buffer) => {
    chunks.push(chunk);
    sizeBytes += chunk.byteLength;
    if (sizeBytes <= MAX_STORED_BYTES) return;
    response.pause().off("data", keep);
    end(response);
  };
  response.on("error", fail);
  response.on("data", keep);
  response.on("end", () => end(undefined));
}

function ownHeaders(claim: SentClaim): string[] {
  return [
    ...[OWN_HEADERS.derivedKey, claim.deriveKey("upstream")],
    ...[OWN_HEADERS.fencingToken, String(claim.fencingToken)],
    ...[OWN_HEADERS.attempt, String(claim.attempt)],
  ];
}
