import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type Replica, Replicas } from "./replicas.ts";
import { authorize, type Connection, parseAddress } from "./transport-options.ts";
import { refusedField } from "./violations.ts";

/**
 * Together as long as an attempt may take: when one has not been answered because the peer vanished without a word, the
 * next goes over a new connection. Pings are sent only while calls are open and nothing comes in.
 */
const PING_INTERVAL_MS = 3000;
const PING_TIMEOUT_MS = 2000;

/** Where the service is and who calls; or a connect transport that knows. */
export type ConnectionOptions =
  | {
      /**
       * The service's URL, `http://` or `https://`, such as "http://localhost:50051", or those of its replicas: calls are
       * spread over them, and none goes to one that is away while another is there.
       */
      readonly address: string | readonly string[];
      /** `ow_…`, of a credential with the role CALLER. */
      readonly apiKey: string;
    }
  | { readonly transport: Transport };

/** @throws InvalidRequestError for what is no address or no key. Opens nothing yet. */
export function connect(options: ConnectionOptions): Connection {
  // Whoever brings a transport closes it.
  if ("transport" in options) return { transport: options.transport, close: () => {} };
  const { address, apiKey } = options;
  const addresses = typeof address === "string" ? [address] : address;
  if (!Array.isArray(addresses) || addresses.length === 0)
    throw refusedField("address", "must be a URL or several");
  const replicas = new Replicas(addresses.map((one) => replicaAt(parseAddress(one), apiKey)));
  return { transport: replicas, close: () => replicas.close() };
}

function replicaAt(baseUrl: string, apiKey: string): Replica {
  const sessions = new Http2SessionManager(baseUrl, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  const transport = createGrpcTransport({
    baseUrl,
    sessionManager: sessions,
    interceptors: [authorize(apiKey)],
    // Most of a message is random: keys, ids, hashes.
    acceptCompression: [],
  });
  return {
    transport,
    isReachable: async () => (await sessions.connect()) !== "error",
    close: () => sessions.abort(),
  };
}
