/**
 * `@onceward/client/web`: the client for browsers and edge runtimes, over the service's HTTP port by `fetch` (Connect
 * protocol), without any of Node's modules.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client/web";
 *
 * const onceward = createOnceward({ address: "https://onceward.example.com", apiKey });
 * const order = await onceward.run({ namespace: "orders", key: orderId, fingerprint: cart }, () => submit(cart));
 * ```
 *
 * An API key is a secret: never put one into a page that people without it can load.
 *
 * @module
 */

import type { Transport } from "@connectrpc/connect";
import { type ClientOptions, checkClientOptions, Onceward } from "./run/client.ts";
import { disconnected, type GuardOffOptions, isGuardOff } from "./run/guard-switch.ts";
import { type CredentialOptions, unsharedCredentialOf } from "./transport/credentials.ts";
import { createFetchTransport, type Fetch } from "./transport/fetch-transport.ts";

export * from "./portable.ts";
export type { Fetch } from "./transport/fetch-transport.ts";

/** The service's address and credential, the defaults of all runs, and the observers of their events. */
export type OncewardWebOptions = ClientOptions &
  (
    | ({
        /**
         * The URL of the service's HTTP port, such as "https://onceward.example.com" or
         * "https://example.com/onceward".
         */
        readonly address: string;
        /** Default: the global one. */
        readonly fetch?: Fetch | undefined;
      } & CredentialOptions)
    | {
        /** A Connect transport that has the address and the credential. */
        readonly transport: Transport;
      }
    | GuardOffOptions
  );

/**
 * Creates a client of the service. Create one per page or isolate and share it. Its `owner` is empty by default.
 *
 * Each call is an HTTP request of its own, and no run waits for I/O of another one: Cloudflare Workers end a request that
 * waits for another request's I/O.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function createOnceward(options: OncewardWebOptions): Onceward {
  checkClientOptions(options);
  const { owner = "" } = options;
  if (isGuardOff(options)) return new Onceward(disconnected(), { ...options, owner });
  const transport =
    "transport" in options
      ? options.transport
      : createFetchTransport(options.address, unsharedCredentialOf(options), options.fetch);
  // `fetch` manages its connections; calls in flight end by their own timeouts.
  return new Onceward({ transport, close: () => {}, gathersCalls: false }, { ...options, owner });
}
