import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OncewardError } from "../errors/errors.ts";
import { connectionError } from "./connection-failures.ts";

/** The headers and trailers of a response. */
export interface ResponseHead {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly trailers: IncomingHttpHeaders;
}

/** Returns the error of a call that was not answered in time. */
export function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors */
const CODE_OF_RESET: ReadonlyMap<number | undefined, Code> = new Map([
  [constants.NGHTTP2_PROTOCOL_ERROR, Code.Internal],
  [constants.NGHTTP2_INTERNAL_ERROR, Code.Internal],
  [constants.NGHTTP2_FLOW_CONTROL_ERROR, Code.Internal],
  [constants.NGHTTP2_SETTINGS_TIMEOUT, Code.Internal],
  [constants.NGHTTP2_FRAME_SIZE_ERROR, Code.Internal],
  [constants.NGHTTP2_COMPRESSION_ERROR, Code.Internal],
  [constants.NGHTTP2_CONNECT_ERROR, Code.Internal],
  [constants.NGHTTP2_REFUSED_STREAM, Code.Unavailable],
  [constants.NGHTTP2_CANCEL, Code.Canceled],
  [constants.NGHTTP2_ENHANCE_YOUR_CALM, Code.ResourceExhausted],
  [constants.NGHTTP2_INADEQUATE_SECURITY, Code.PermissionDenied],
]);

/**
 * Returns a function that returns why a stream has no answer: the server reset it, or the connection ended. Call this
 * while the stream is open.
 */
export function brokenError(
  stream: ClientHttp2Stream,
  authority: string,
): (cause?: unknown) => ConnectError | OncewardError {
  // A closed stream no longer has its session.
  const { session } = stream as ClientHttp2Stream & { readonly session?: ClientHttp2Session };
  return (cause) => {
    const resetWith = session?.destroyed === false ? stream.rstCode : undefined;
    const code = CODE_OF_RESET.get(resetWith);
    // The first thing a server sends is its settings, together with the acknowledgement of the client's settings.
    if (code === undefined)
      return connectionError({ authority, spokeHttp2: !session?.pendingSettingsAck }, cause);
    const message = `the stream was reset with HTTP/2 error code ${resetWith}`;
    return new ConnectError(message, code, undefined, undefined, cause);
  };
}

/**
 * Removes a closed stream's listeners, and with them the call's request and response. A native object of Node's keeps a
 * closed stream alive until V8's next full collection.
 */
export function dropListeners(stream: ClientHttp2Stream): void {
  stream.removeAllListeners();
  stream.on("error", ignore);
}

function ignore(): void {}
