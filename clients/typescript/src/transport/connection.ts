import type { Transport } from "@connectrpc/connect";
import { refusedField } from "../errors/violations.ts";
import { type CredentialOptions, credentialOf } from "./credentials.ts";
import { connectLate } from "./late-connection.ts";
import { checkTls, type TlsOptions } from "./tls-options.ts";
import { type Connection, parseOrigin } from "./transport-options.ts";

/** The service's address and a credential, or a Connect transport that has both. */
export type ConnectionOptions =
  | ({
      /**
       * The service's URL, `http://` or `https://`, such as "http://localhost:50051", or the URLs of its replicas:
       * calls are spread over the replicas that are up. Without a path: gRPC does not support one. On the same machine also a Unix
       * socket, "unix:/run/onceward/onceward.sock".
       */
      readonly address: string | readonly string[];
      /** The certificates of `https://` connections; files are read again for each connection. Default: Node's. */
      readonly tls?: TlsOptions | undefined;
    } & CredentialOptions)
  | {
      /** A Connect transport that has the address and the credential, and that its maker closes. */
      readonly transport: Transport;
    };

/**
 * Returns a connection without opening it yet.
 *
 * @throws InvalidRequestError for an invalid address or key, and for TLS options that can't be right.
 */
export function connect(options: ConnectionOptions): Connection {
  // The caller closes a transport of its own.
  if ("transport" in options) return { transport: options.transport, close: () => {} };
  const { address, tls } = options;
  const addresses = typeof address === "string" ? [address] : address;
  if (!Array.isArray(addresses) || addresses.length === 0)
    throw refusedField("address", "must be a URL or several");
  const origins = addresses.map(parseOrigin);
  if (tls !== undefined) checkTls(tls, origins);
  const credential = credentialOf(options);
  return connectLate(async () => {
    const { connectGrpc } = await import("./grpc-connection.ts");
    return connectGrpc(origins, credential, tls);
  });
}
