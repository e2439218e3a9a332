import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { IdentityService } from "@onceward/gen/onceward/v1/identity_pb.ts";
import { changeConnection, isUnanswered, isUnreachable } from "./connection.ts";
import { readFailure } from "./failure.ts";
import { endSession } from "./session-end.ts";

/** A call that takes longer has failed for a person who waits: above the server's own 20 s for a count. */
const CALL_TIMEOUT_MS = 25_000;

/**
 * Returns the transport to the server that the page came from. The browser adds the session's cookie. JSON,
 * so that the network panel of a browser's developer tools shows requests that `curl` can repeat.
 */
export function createTransport(): Transport {
  return createConnectTransport({
    baseUrl: window.location.origin,
    defaultTimeoutMs: CALL_TIMEOUT_MS,
    interceptors: [noticeAnswers],
  });
}

/** Learns from each call whether the server answers, the tenant is active and the session has not ended. */
const noticeAnswers: Interceptor = (next) => async (request) => {
  try {
    const answer = await next(request);
    noticeAnswer(request.service.typeName);
    return answer;
  } catch (thrown) {
    throw noticeError(ConnectError.from(thrown));
  }
};

/** A session of a suspended tenant still learns who it is: only its other calls show that the tenant is resumed. */
function noticeAnswer(service: string): void {
  if (service !== IdentityService.typeName || isUnreachable()) changeConnection("answering");
}

/** Returns the error to show: the browser's own words for a call without an answer say nothing to a person. */
function noticeError(error: ConnectError): ConnectError {
  if (error.code === Code.Canceled) return error;
  if (isUnanswered(error)) {
    changeConnection("unreachable");
    return new ConnectError("The server does not answer.", Code.Unavailable);
  }
  const { reason } = readFailure(error);
  if (error.code === Code.Unauthenticated) {
    endSession(reason === "CREDENTIAL_MISSING" ? "NO_SESSION" : "SESSION_ENDED");
  }
  changeConnection(reason === "TENANT_SUSPENDED" ? "suspended" : "answering");
  return error;
}
