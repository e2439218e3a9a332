import type { EachMessageHandler, EachMessagePayload, IHeaders, Message, Producer } from "kafkajs";
import { createHandler } from "./consumers/handle.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** Well below KafkaJS' session timeout of 30 s: the consumer sends no heartbeats while it waits. */
const DEFAULT_WAIT_MS = 10_000;

/** {@link ConsumerOptions}, and the destination of messages that no retry can help. */
export interface EachMessageOptions extends ConsumerOptions<EachMessagePayload> {
  /**
   * Takes a message whose operation failed permanently, or that can't be claimed (no key, the key of another
   * request); its offset is committed afterwards. Kafka has no dead-letter queues of its own: {@link deadLetterTo}
   * sends to a topic. May get a message twice, after a crash.
   */
  readonly deadLetter: (payload: EachMessagePayload, error: Error) => Promise<void>;
}

/**
 * Returns an `eachMessage` that performs each operation once, however often a rebalance, a crash or the producer
 * causes its delivery. KafkaJS has had no stable release since February 2023: new consumers use `@onceward/client/kafka`.
 *
 * ```ts
 * await producer.send({ topic: "charges", messages: [withKey(order.id, { value: JSON.stringify(order) })] });
 *
 * await consumer.run({
 *   eachMessage: eachMessageOnce(
 *     onceward,
 *     { namespace: "charges", deadLetter: deadLetterTo(producer, "charges.dead") },
 *     async ({ message }, claim) => {
 *       const order = readJson(message.value);
 *       await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *     },
 *   ),
 * });
 * ```
 *
 * - The key is the message's `idempotency-key` header. The function's value is not kept.
 * - The offset moves on only once the operation is settled: done now, done before, or failed permanently.
 * - While another holder runs the operation, waits up to `waitMs` (10 s); then the partition is paused for
 *   `redeliverAfterMs` and the error is thrown, so that KafkaJS delivers the message again, and the partition's order
 *   is kept. The same happens if the service is unreachable, or the record is ambiguous.
 * - An error of the function is rethrown, for KafkaJS to retry by its own settings. Note that KafkaJS stops a
 *   consumer permanently after a TypeError, RangeError, ReferenceError or SyntaxError: `readJson` throws none. To
 *   give up yourself, throw a TerminalError.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function eachMessageOnce(
  onceward: Runner,
  options: EachMessageOptions,
  fn: (payload: EachMessagePayload, claim: Claim) => unknown,
): EachMessageHandler {
  checkFunction("fn", fn);
  const { waitMs = DEFAULT_WAIT_MS, deadLetter } = options;
  const handle = createHandler(
    onceward,
    { ...options, waitMs },
    { keyOf, deliveryIdsOf },
    async (payload, claim) => void (await fn(payload, claim)),
  );
  return async (payload) => {
    const delivery = await handle(payload);
    switch (delivery.kind) {
      case "processed":
        return;
      case "duplicate":
      case "failed":
      case "refused":
        if (delivery.error !== undefined) await deadLetter(payload, delivery.error);
        return;
      case "released":
        throw delivery.error;
      case "postponed":
        // The timer need not keep a process alive whose consumer has stopped.
        setTimeout(payload.pause(), delivery.delayMs).unref();
        throw delivery.error;
      default:
        return delivery satisfies never;
    }
  };
}

/** Returns a `deadLetter` option that sends the message to a topic, with the header `onceward-error` added. */
export function deadLetterTo(
  producer: Pick<Producer, "send">,
  topic: string,
): EachMessageOptions["deadLetter"] {
  return async ({ message: { key, value, headers } }, error) => {
    const messages = [{ key, value, headers: { ...headers, "onceward-error": error.message } }];
    await producer.send({ topic, messages });
  };
}

/**
 * Returns a message with its operation's key, for the producer. @throws OncewardError INVALID_REQUEST for an invalid
 * key.
 */
export function withKey<M extends Message>(key: string, message: M): M & { readonly headers: IHeaders } {
  return { ...message, headers: { ...message.headers, [KEY_HEADER]: checkedKey(key) } };
}

function keyOf({ message }: EachMessagePayload): string | undefined {
  const value = message.headers?.[KEY_HEADER];
  if (Array.isArray(value)) throw new Error(`there are ${value.length} ${KEY_HEADER} headers`);
  return value?.toString();
}

function deliveryIdsOf({ topic, partition, message: { offset } }: EachMessagePayload) {
  const named = ["-", ":", "/", "."].map((by) => [topic, partition, offset].join(by));
  return [offset, `${partition}-${offset}`, `${partition}:${offset}`, ...named];
}
