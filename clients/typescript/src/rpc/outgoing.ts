import { formatIdempotencyKey } from "../keys/idempotency-key.ts";
import { newKey } from "../keys/new-key.ts";
import { outgoingKey } from "../run/current-claim.ts";

/** Which keys a client interceptor sends. `Call` is the library's type of an outgoing call. */
export interface OutgoingRpcOptions<Call> {
  /** Returns the name of a call among those of one claim, from which its key is derived. Default: its full procedure. */
  readonly name?: (call: Call) => string;
  /**
   * What a call outside of a guarded function gets. A new key is made once per call, so that retries within the interceptor repeat the call
   * under the same key; a repeat by the caller has another one. Default: `no key`.
   */
  readonly withoutClaim?: "no key" | "new key" | undefined;
}

/** Returns the key of an outgoing call, as its header; undefined for none. */
export function keyOfOutgoing<Call>(
  procedure: string,
  call: Call,
  { name = () => procedure, withoutClaim }: OutgoingRpcOptions<Call>,
): string | undefined {
  const key = outgoingKey(() => name(call));
  return key === undefined && withoutClaim === "new key" ? formatIdempotencyKey(newKey()) : key;
}
