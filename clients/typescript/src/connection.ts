import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { OncewardError } from "./errors.ts";

/**
 * Together as long as an attempt may take: when one has not been answered because the peer vanished without a word, the
 * next goes over a new connection. Pings are sent only while calls are open and nothing comes in.
 */
const PING_INTERVAL_MS = 3000;
const PING_TIMEOUT_MS = 2000;

/** Where the service is and who calls; or a connect transport that knows. */
export type ConnectionOptions =
  | {
      /** The service's URL, `http://` or `https://`, such as "http://localhost:50051". */
      readonly address: string;
      /** `ow_…`, of a credential with the role CALLER. */
      readonly apiKey: string;
    }
  | { readonly transport: Transport };

/** A way to the service that can be closed. */
export interface Connection {
  readonly transport: Transport;
  /** Ends the calls that are open. */
  readonly close: () => void;
}

/** @throws OncewardError INVALID_REQUEST for what is no address or no key. Opens nothing yet. */
export function connect(options: ConnectionOptions): Connection {
  // Whoever brings a transport closes it.
  if ("transport" in options) return { transport: options.transport, close: () => {} };
  const baseUrl = parseAddress(options.address);
  const sessionManager = new Http2SessionManager(baseUrl, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager,
    interceptors: [authorize(options.apiKey)],
    // Most of a message is random: keys, ids, hashes.
    acceptCompression: [],
  });
  return { transport, close: () => sessionManager.abort() };
}

function parseAddress(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url.origin;
  throw refused("address", `must be a URL such as "http://localhost:50051", is ${JSON.stringify(address)}`);
}

function authorize(apiKey: string): Interceptor {
  // Never shown: it is a secret even if it is a wrong one.
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw refused("apiKey", "must be an API key (ow_…), visible ASCII without spaces");
  }
  const credential = `Bearer ${apiKey}`;
  return (next) => (request) => {
    request.header.set("authorization", credential);
    return next(request);
  };
}

function refused(field: string, description: string): OncewardError {
  return new OncewardError("INVALID_REQUEST", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}
