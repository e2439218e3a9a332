import type { Transport } from "@connectrpc/connect";
import { refusedField } from "../errors/violations.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { type Replica, Replicas } from "./replicas.ts";
import { SessionManager } from "./session-manager.ts";
import { type Connection, credential, parseOrigin } from "./transport-options.ts";

/** Where the service is and who calls; or a connect transport that knows. */
export type ConnectionOptions =
  | {
      /**
       * The service's URL, `http://` or `https://`, such as "http://localhost:50051", or those of its replicas: calls are
       * spread over them, and none goes to one that is away while another is there. Without a path, which gRPC has no
       * place for.
       */
      readonly address: string | readonly string[];
      /**
       * `ow_…`, of a credential with the role CALLER. Undefined, as an environment variable may be, is refused like any
       * other value that is no key.
       */
      readonly apiKey: string | undefined;
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
