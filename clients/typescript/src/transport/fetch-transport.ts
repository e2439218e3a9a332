import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type Transport } from "@connectrpc/connect";
import { createMethodUrl, runUnaryCall } from "@connectrpc/connect/protocol";
import { errorFromJsonBytes, requestHeader } from "@connectrpc/connect/protocol-connect";
import type { Credential } from "./credentials.ts";
import { parseBaseUrl } from "./transport-options.ts";

/** The part of `fetch` that this transport uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const CONTENT_TYPE = "application/proto";
/** RFC 9110, 15.5.14: content too large. */
const TOO_LARGE = 413;

/**
 * Returns a transport to the service's HTTP port over `fetch`: the Connect protocol
 * (https://connectrpc.com/docs/protocol) with binary messages, for unary RPCs. Connect's own transports also support
 * streams and JSON, and are twice as large.
 *
 * @throws InvalidRequestError for an invalid address.
 */
export function createFetchTransport(
  address: string,
  credential: Credential,
  // Called on the global object, as browsers require.
  fetch: Fetch = (url, init) => globalThis.fetch(url, init),
): Transport {
  const baseUrl = parseBaseUrl(address);
  return {
    unary(method, signal, timeoutMs, header, message, contextValues = createContextValues()) {
      return credential.use((authorization) =>
        runUnaryCall({
          ...(signal !== undefined && { signal }),
          ...(timeoutMs !== undefined && { timeoutMs }),
          req: {
            stream: false,
            service: method.parent,
            method,
            requestMethod: "POST",
            url: createMethodUrl(baseUrl, method),
            header: requestHeader("unary", true, timeoutMs, header, false),
            contextValues,
            message,
          },
          async next({ url, header, signal, message }) {
            header.set("authorization", authorization);
            const body = toBinary(method.input, message);
            const reply = await post(fetch, url, { headers: header, body, signal });
            const read = messageOf(method.output, reply);
            const of = { stream: false, service: method.parent, method } as const;
            return { ...of, header: reply.headers, message: read, trailer: new Headers() };
          },
        }),
      );
    },
    stream() {
      return Promise.reject(new ConnectError("there are no streams here", Code.Unimplemented));
    },
  };
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

async function post(fetch: Fetch, url: string, init: Omit<RequestInit, "method">): Promise<Reply> {
  try {
    const response = await fetch(url, { ...init, method: "POST" });
    const { status, headers } = response;
    return { status, headers, body: new Uint8Array(await response.arrayBuffer()) };
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    // `fetch` reports every network failure as a TypeError.
    const why = reasonOf(cause);
    throw new ConnectError(why, Code.Unavailable, undefined, undefined, cause);
  }
}

/** Returns what `fetch` says of a failure. Node names it in the cause only. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return `${failure}`;
  const { cause, message } = failure;
  if (!(cause instanceof Error)) return message;
  const isOtherProtocol = cause.name === "HTTPParserError";
  const hint = isOtherProtocol ? "; is it gRPC's port? This client needs the HTTP port" : "";
  return `${message}: ${cause.message}${hint}`;
}

/**
 * Returns the response message.
 *
 * @throws ConnectError: the service's; UNAVAILABLE, so that the call is retried, if a load balancer, a proxy or another
 *   server answered; RESOURCE_EXHAUSTED if the request was too large for one of these.
 */
function messageOf<Desc extends DescMessage>(
  schema: Desc,
  { status, headers, body }: Reply,
): MessageShape<Desc> {
  const contentType = headers.get("content-type");
  if (status === 200 && contentType === CONTENT_TYPE) return fromBinary(schema, body);
  const message = `a server that is not Onceward, such as a load balancer, answered HTTP ${status} with ${contentType ?? "no content type"}`;
  const foreign = new ConnectError(message, status === TOO_LARGE ? Code.ResourceExhausted : Code.Unavailable);
  throw contentType === "application/json" ? errorFromJsonBytes(body, undefined, foreign) : foreign;
}
