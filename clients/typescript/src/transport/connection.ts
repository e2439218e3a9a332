import type { Transport } from "@connectrpc/connect";
import { refusedField } from "../errors/violations.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { type Replica, Replicas } from "./replicas.ts";
import { SessionManager } from "./session-manager.ts";
import { type Connection, credential, parseOrigin } from "./transport-options.ts";

/** The service's address and a credential, or a Connect transport that has both. */
export type ConnectionOptions =
  | {
      /**
       * The service's URL, `http://` or `https://`, such as "http://localhost:50051", or the URLs of its replicas:
       * calls are spread over the replicas that are up. Without a path: gRPC does not support one.
       */
      readonly address: string | readonly string[];
      /**
       * `ow_…`, the API key of a credential with the role CALLER. Undefined, such as an unset environment variable,
       * is refused like any invalid key.
       */
      readonly apiKey: string | undefined;
    }
  | {
      /** A Connect transport that has the address and the credential, and that its maker closes. */
      readonly transport: Transport;
    };

/** Returns a connection without opening it yet. @throws InvalidRequestError for an invalid address or key. */
export function connect(options: ConnectionOptions): Connection {
  // The caller closes a transport of its own.
  if ("transport" in options) return { transport: options.transport, close: () => {} };
  const { address, apiKey } = options;
  const addresses = typeof address === "string" ? [address] : address;
  if (!Array.isArray(addresses) || addresses.length === 0)
    throw refusedField("address", "must be a URL or several");
  const replicas = new Replicas(addresses.map((one) => replicaAt(parseOrigin(one), apiKey)));
  return { transport: replicas, close: () => replicas.close() };
}

function replicaAt(baseUrl: string, apiKey: string | undefined): Replica {
  const sessionManager = new SessionManager(baseUrl);
  return {
    transport: createUnaryTransport(sessionManager, credential(apiKey)),
    isReachable: () => sessionManager.isReachable(),
    close: () => sessionManager.abort(),
  };
}
