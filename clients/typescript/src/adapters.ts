/**
 * `@onceward/client/adapters`: the core that the adapters of this package are made of, for frameworks and brokers that it
 * has no adapter for. `describeConsumerAdapter` and `describeHttpAdapter` of `@onceward/client/testing` check an adapter.
 *
 * A consumer, in three steps: name the operation, handle the message, tell the broker.
 *
 * ```ts
 * import { createHandler, KEY_HEADER } from "@onceward/client/adapters";
 *
 * const handle = createHandler(
 *   onceward,
 *   { namespace: "charges" },
 *   (message) => message.headers[KEY_HEADER],
 *   async (message, claim) => provider.charge(message.body, { idempotencyKey: claim.deriveKey("provider") }),
 * );
 * broker.on("message", async (message) => {
 *   const delivery = await handle(message);
 *   if (isSettled(delivery)) message.ack();
 *   else if (delivery.kind === "refused") message.reject();
 *   else message.retry(delivery.kind === "postponed" ? delivery.delayMs : 0);
 * });
 * ```
 *
 * An HTTP framework: describe the request, run the handler, send the answer. `src/hono.ts` is an example of 50 lines.
 *
 * @module
 */

export { type Delivery, isSettled } from "./consumers/delivery.ts";
export { createHandler, type HandledValue } from "./consumers/handle.ts";
export { checkedKey, KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { handleFetch, toResponse } from "./http/fetch-response.ts";
export {
  type Answer,
  createGuard,
  type Guard,
  type GuardedRequest,
  type Handled,
  type Handling,
  type NotHandled,
  ResponseDestroyed,
} from "./http/guard.ts";
export type { HttpOptions } from "./http/options.ts";
export type { WholeResponse } from "./http/whole-response.ts";
export { IDEMPOTENCY_KEY } from "./keys/idempotency-key.ts";
export type { Runner } from "./run/client.ts";
