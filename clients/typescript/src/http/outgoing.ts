import { IDEMPOTENCY_KEY } from "../keys/idempotency-key.ts";
import { outgoingKey } from "../run/current-claim.ts";

/** A request that is about to be sent. */
export interface OutgoingCall {
  /** In upper case. */
  readonly method: string;
  readonly url: URL;
}

/** Which keys `withIdempotencyKeys` sends. */
export interface OutgoingOptions {
  /** Returns the name of a call among those of one claim, from which its key is derived. Default: `METHOD host/path`, without the query. */
  readonly name?: (call: OutgoingCall) => string;
}

/** RFC 9110, 9.2.1: they change nothing, so that a repeat needs no key. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/**
 * Returns a `fetch` that sends the current claim's key with each request: `claim.deriveKey("POST bank.example.com/v1/charges")`, the same
 * in all languages. So a repeat of the call has the same key, also in the next attempt after a crash, and the next service answers it
 * without a second effect.
 *
 * ```ts
 * const callBank = withIdempotencyKeys();
 * await onceward.run({ namespace: "orders", key: order.id }, () => callBank("https://bank.example.com/v1/charges", { method: "POST", body }));
 * ```
 *
 * - Calls of one method and path under one claim are one operation, unless `name` tells them apart: the next service refuses the second
 *   one if its body differs (422), and else answers it with the first one's response.
 * - Safe methods get no key, nor do calls outside of a guarded function or after its end, nor in browsers and edge runtimes.
 * - A header `Idempotency-Key` of your own is kept.
 * - Only calls of the returned function get a key, whichever host they go to: use it for hosts that may see one. `fetch` sends the header
 *   to the target of a redirect, too.
 */
export function withIdempotencyKeys(
  // Called on the global object, as its own `fetch` requires.
  send: typeof fetch = (...call) => fetch(...call),
  { name = ({ method, url }) => `${method} ${url.host}${url.pathname}` }: OutgoingOptions = {},
): typeof fetch {
  return async (input, init) => {
    const sent = typeof input === "object" && "url" in input ? input : undefined;
    const method = (init?.method ?? sent?.method ?? "GET").toUpperCase();
    const headers = new Headers(init?.headers ?? sent?.headers);
    if (SAFE_METHODS.has(method) || headers.has(IDEMPOTENCY_KEY)) return await send(input, init);
    const key = outgoingKey(() => name({ method, url: new URL(sent?.url ?? `${input}`) }));
    if (key === undefined) return await send(input, init);
    headers.set(IDEMPOTENCY_KEY, key);
    return await send(input, { ...init, headers });
  };
}
