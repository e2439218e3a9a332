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
 * An API key is a secret: a page that everybody can load is not the place for one that others can use.
 *
 * @module
 */

import type { Transport } from "@connectrpc/connect";
import { type ClientOptions, checkClientOptions, Onceward } from "./run/client.ts";
import { createFetchTransport, type Fetch } from "./transport/fetch-transport.ts";

export * from "./portable.ts";
export type { Fetch } from "./transport/fetch-transport.ts";

/** Where the service is, who calls, what holds for every run that does not say otherwise, and who is told. */
export type OncewardWebOptions = ClientOptions &
  (
    | {
        /** The URL of the service's HTTP port, such as "https://onceward.example.com" or "https://example.com/onceward". */
        readonly address: string;
        /** `ow_…`, of a credential with the role CALLER. */
        readonly apiKey: string;
        /** Default: the global one. */
        readonly fetch?: Fetch | undefined;
      }
    | { readonly transport: Transport }
  );

/**
 * A client of the service, to be shared by the whole page or isolate. Shown to others without an `owner` of its own.
 *
 * @throws InvalidRequestError for an option that can't be meant.
 */
export function createOnceward(options: OncewardWebOptions): Onceward {
  checkClientOptions(options);
  const { owner = "" } = options;
  const transport =
    "transport" in options
      ? options.transport
      : createFetchTransport(options.address, options.apiKey, options.fetch);
  // fetch keeps its connections to itself; calls that are open end by their own timeouts.
  return new Onceward({ transport, close: () => {} }, { ...options, owner });
}
