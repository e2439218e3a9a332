import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
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
    interceptors: [noticeSessionEnd],
  });
}

/** Ends the page's session when any call is answered that it has none. */
const noticeSessionEnd: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) {
      endSession(readFailure(error).reason === "CREDENTIAL_MISSING" ? "NO_SESSION" : "SESSION_ENDED");
    }
    throw error;
  }
};
