import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import type { Claim } from "@onceward/client";
import { OutcomeUnknownError } from "@onceward/client/http";
import { endToEnd, OWN_HEADERS, pairsOf } from "./headers.ts";
import type { Ending } from "./metrics.ts";
import type { Upstream } from "./upstream.ts";

/** A guarded request, read whole. */
export interface GuardedCall {
  readonly incoming: IncomingMessage;
  readonly body: Buffer<ArrayBuffer>;
  readonly timeoutMs: number;
  /** Gets how the call ended, if the guard has called the upstream service. */
  readonly report: (ending: Ending) => void;
}

/** What the upstream service gets of a claim, and whether the claim still lasts. */
type SentClaim = Pick<Claim, "signal" | "deriveKey" | "fencingToken" | "attempt">;

/** The upstream service was not called: nobody has seen the request. */
export class NotSentError extends Error {
  override readonly name = "NotSentError";
}

/**
 * Calls the upstream service, on a connection of its own, so that an error before the connection exists means that nothing was
 * sent.
 *
 * @throws NotSentError if nothing was sent, also because the claim was lost until then. OutcomeUnknownError if the connection
 *   broke or the time ended afterwards, also while the returned body is read.
 */
export async function callUpstream(
  upstream: Upstream,
  call: GuardedCall,
  claim: SentClaim | undefined,
): Promise<Response> {
  const { incoming, body, timeoutMs } = call;
  const headers = [
    ...endToEnd(incoming.rawHeaders, ["expect", "transfer-encoding", "content-length", "trailer"]),
    ...["content-length", String(body.byteLength)],
    ...(claim === undefined ? [] : ownHeaders(claim)),
  ];
  const request = upstream.send(incoming, headers, "own");
  let isSent = false;
  request.once("socket", (socket) => {
    // Before what Node writes when the connection exists.
    socket.once("connect", () => {
      // Meanwhile the lease may have ended, and another proxy may have sent its request.
      if (claim?.signal.aborted) request.destroy(new Error("the claim was lost before the request was sent"));
      else isSent = true;
    });
  });
  const timer = setTimeout(
    () => request.destroy(new Error(`no whole response in ${timeoutMs} ms`)),
    timeoutMs,
  );
  request.once("close", () => clearTimeout(timer));
  const failure = (cause: unknown) => {
    call.report(isSent ? "unknown" : "unreachable");
    if (isSent) return new OutcomeUnknownError("The upstream service broke off.", { cause });
    return new NotSentError("The upstream service is unreachable.", { cause });
  };
  call.report("ran");
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on("error", (cause) => reject(failure(cause)));
    request.on("response", resolve);
    request.end(body);
  });
  const status = response.statusCode ?? 0;
  // A fetch Response refuses a body for these.
  const isEmpty = status === 204 || status === 205 || status === 304;
  if (isEmpty) await buffer(response).catch((cause) => Promise.reject(failure(cause)));
  try {
    const content = isEmpty ? null : ReadableStream.from(chunksOf(response, failure));
    return new Response(content as ReadableStream<Uint8Array> | null, {
      status,
      headers: pairsOf(endToEnd(response.rawHeaders, ["transfer-encoding", "trailer"])) as [string, string][],
    });
  } catch (cause) {
    request.destroy();
    throw failure(cause);
  }
}

async function* chunksOf(
  response: IncomingMessage,
  failure: (cause: unknown) => Error,
): AsyncGenerator<Uint8Array> {
  try {
    yield* response;
  } catch (cause) {
    throw failure(cause);
  }
}

function ownHeaders(claim: SentClaim): string[] {
  return [
    ...[OWN_HEADERS.derivedKey, claim.deriveKey("upstream")],
    ...[OWN_HEADERS.fencingToken, String(claim.fencingToken)],
    ...[OWN_HEADERS.attempt, String(claim.attempt)],
  ];
}
