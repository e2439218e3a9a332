import type { EachMessageHandler, EachMessagePayload, IHeaders, Message, Producer } from "kafkajs";
import type { DeadLetterOptions } from "./consumers/dead-letter.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { eachMessageOnce as eachKafkaMessageOnce } from "./kafka.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** How a message is handled. Kafka has no dead-letter queues of its own: {@link deadLetterTo} sends to a topic. */
export interface EachMessageOptions
  extends ConsumerOptions<EachMessagePayload>,
    DeadLetterOptions<EachMessagePayload> {}

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
 * - A key that contains no time has the message's timestamp, which rebalances and resets of offsets keep. A producer that
 *   sends the operation again, and a tool that copies messages without their timestamps, give it a later one.
 * - The offset moves on only once the operation is settled: done now, done before, or failed permanently.
 * - While another holder runs the operation, waits up to `waitMs` (10 s, well below KafkaJS' session timeout of 30 s); then
 *   the partition is paused for `redeliverAfterMs` and the error is thrown, so that KafkaJS delivers the message again, and
 *   the partition's order is kept. The same happens if the service is unreachable, or the record is ambiguous. After an
 *   error of the function, it is paused for a delay that doubles, until `maxAttempts` is reached.
 * - KafkaJS stops a consumer permanently after a TypeError, RangeError, ReferenceError or SyntaxError, so it gets an Error
 *   with such an error as its `cause`.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function eachMessageOnce(
  onceward: Runner,
  options: EachMessageOptions,
  fn: (payload: EachMessagePayload, claim: Claim) => unknown,
): EachMessageHandler {
  const eachMessage = eachKafkaMessageOnce<EachMessagePayload>(onceward, options, fn);
  return async (payload) => {
    try {
      await eachMessage(payload);
    } catch (cause) {
      throw isFatal(cause) ? new Error(`${cause}`, { cause }) : cause;
    }
  };
}

function isFatal(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((fatal) => error instanceof fatal);
}

/**
 * Returns a `deadLetter` option that sends the message to a topic, with the header `onceward-error` added, and with its
 * timestamp.
 */
export function deadLetterTo(
  producer: Pick<Producer, "send">,
  topic: string,
): (payload: EachMessagePayload, error: Error) => Promise<void> {
  return async ({ message: { key, value, headers, timestamp } }, error) => {
    const messages = [{ key, value, timestamp, headers: { ...headers, "onceward-error": error.message } }];
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
