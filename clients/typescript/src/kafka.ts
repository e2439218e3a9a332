import { createConclude, type DeadLetterOptions, type Retry } from "./consumers/dead-letter.ts";
import { createEffectHandler } from "./consumers/handle.ts";
import { type StreamConsumer, type StreamMessage, StreamReader } from "./consumers/kafka-stream.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import { type ConsumerOptions, redeliveryOf } from "./consumers/options.ts";
import type { PartitionMessage } from "./consumers/partitions.ts";
import { checkWholeNumber } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export type { MessageStream, StreamConsumer, StreamMessage } from "./consumers/kafka-stream.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export type { PartitionMessage } from "./consumers/partitions.ts";
export { readJson } from "./consumers/read-json.ts";

/** Well below the 5 minutes in which librdkafka expects the next poll. */
const DEFAULT_WAIT_MS = 10_000;
const DEFAULT_MAX_MESSAGES = 1000;

/** How a message of Kafka is handled. */
export interface KafkaOptions<Message> extends ConsumerOptions<Message>, DeadLetterOptions<Message> {}

/** {@link KafkaOptions}, and what is read. */
export interface ConsumeOptions<Message> extends KafkaOptions<Message> {
  /** The topics that are read. */
  readonly topics: readonly string[];
  /**
   * Where a partition is read from that has no committed offset, as in `@platformatic/kafka`. Default: `"earliest"`, so
   * that no message is skipped.
   */
  readonly fallbackMode?: "earliest" | "latest" | "fail" | undefined;
  /**
   * The most messages that were read and are not handled, over all partitions. Then no partition is read until there are
   * fewer: a partition that waits for long stops the others. At least 1. Default: 1,000.
   */
  readonly maxMessages?: number | undefined;
}

/**
 * Reads topics with a consumer of `@platformatic/kafka` 2 (Node 22.22 or later), and performs the operation of each message once, however often a
 * rebalance, a crash or the producer causes its delivery. Begins at once.
 *
 * ```ts
 * await producer.send({ messages: [withKey(order.id, { topic: "charges", value: JSON.stringify(order) })] });
 *
 * const consumer = new Consumer({ groupId: "billing", clientId: "billing", bootstrapBrokers });
 * const consuming = consumeOnce(
 *   onceward,
 *   consumer,
 *   {
 *     topics: ["charges"],
 *     namespace: "charges",
 *     deadLetter: (message) => producer.send({ messages: [{ ...message, topic: "charges.dead" }] }),
 *   },
 *   async (message, claim) => {
 *     const order = readJson(message.value);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * // At the end of the process:
 * await consuming.close();
 * await consumer.close();
 * ```
 *
 * - The key is the message's `idempotency-key` header. The function's value is not kept.
 * - A key that contains no time has the message's timestamp, which rebalances and resets of offsets keep. A producer that
 *   sends the operation again, and a tool that copies messages without their timestamps, give it a later one.
 * - The messages of a partition are handled one after the other, those of different partitions beside each other.
 * - Offsets are committed here, each after its message is settled: done now, done before, or failed permanently. The
 *   package's own `autocommit` commits an offset when its message is read, and would lose it in a crash.
 * - While another holder runs the operation, waits up to `waitMs` (10 s), and again after `redeliverAfterMs`. The
 *   partition waits in the meantime, so that its order is kept; heartbeats continue. The same happens while the
 *   service is unreachable, and while the record is ambiguous. After an error of the function, it waits for a delay that
 *   doubles, until `maxAttempts` is reached.
 * - After a rebalance, the messages of partitions that the consumer has lost are dropped before their functions begin, and
 *   a new stream is opened, from the committed offsets. A function that runs is completed, and the partition's next
 *   owner finds a duplicate.
 * - If the stream fails, a warning says so (ONCEWARD_STREAM_FAILED), and the next one is opened after
 *   `redeliverAfterMs`. Closing the consumer ends this.
 *
 * @returns the running consumption; `close` ends it once the functions that run have ended.
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function consumeOnce<Message extends StreamMessage>(
  onceward: Runner,
  consumer: StreamConsumer<Message>,
  options: ConsumeOptions<Message>,
  fn: (message: Message, claim: Claim) => unknown,
): { close(): Promise<void> } {
  const { topics, fallbackMode = "earliest", maxMessages = DEFAULT_MAX_MESSAGES } = options;
  const { redeliverAfterMs } = redeliveryOf(options);
  checkWholeNumber("maxMessages", maxMessages, 1, Number.MAX_SAFE_INTEGER);
  const timed = withMessageTime(options, ({ timestamp }: Message) => Number(timestamp));
  const handle = createConcludingHandler<Message>(onceward, timed, fn, ({ headers }) =>
    keyOfHeaders([...headers]),
  );
  return new StreamReader(consumer, { topics, fallbackMode, maxMessages, redeliverAfterMs }, handle);
}

/** The part of the argument of `eachMessage` that the adapter uses. */
export interface EachMessagePayload extends PartitionMessage {
  readonly message: {
    readonly offset: string;
    /** In milliseconds since 1970. */
    readonly timestamp: string;
    readonly headers?: Readonly<Record<string, unknown>> | undefined;
  };
  /** Pauses the partition, and returns the function that resumes it. */
  pause(): () => void;
}

/**
 * Returns an `eachMessage` for the KafkaJS interface of `@confluentinc/kafka-javascript` that performs each operation once,
 * however often a rebalance, a crash or the producer causes its delivery.
 *
 * ```ts
 * import { KafkaJS } from "@confluentinc/kafka-javascript";
 *
 * await producer.send({ topic: "charges", messages: [withKey(order.id, { value: JSON.stringify(order) })] });
 *
 * await consumer.run({
 *   eachMessage: eachMessageOnce<KafkaJS.EachMessagePayload>(
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
 * - While another holder runs the operation, waits up to `waitMs` (10 s); then the partition is paused for
 *   `redeliverAfterMs` and the error is thrown, so that the message comes again, and the partition's order is kept. The
 *   same happens while the service is unreachable, and while the record is ambiguous. After an error of the function, it
 *   is paused for a delay that doubles, until `maxAttempts` is reached. The package logs each such error.
 * - KafkaJS stops a consumer permanently after a TypeError, RangeError, ReferenceError or SyntaxError, so an Error is
 *   thrown that has such an error as its `cause`.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function eachMessageOnce<Payload extends EachMessagePayload>(
  onceward: Runner,
  options: KafkaOptions<Payload>,
  fn: (payload: Payload, claim: Claim) => unknown,
): (payload: Payload) => Promise<void> {
  const timed = withMessageTime(options, ({ message }: Payload) => Number(message.timestamp));
  const handleOnce = createConcludingHandler<Payload>(onceward, timed, fn, ({ message }) =>
    keyOfHeaders(Object.entries(message.headers ?? {})),
  );
  return async (payload) => {
    const retry = await handleOnce(payload);
    if (retry === undefined) return;
    const resume = payload.pause();
    // The timer need not keep a process alive whose consumer has stopped.
    setTimeout(() => resumeIfConnected(resume), retry.delayMs).unref();
    const { error } = retry;
    throw stopsConsumer(error) ? new Error(`${error}`, { cause: error }) : error;
  };
}

function stopsConsumer(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((fatal) => error instanceof fatal);
}

/** A consumer that has disconnected refuses to resume a partition: nothing is paused then. */
function resumeIfConnected(resume: () => void): void {
  try {
    resume();
  } catch {}
}

/** The part of a KafkaJS interface's producer that {@link deadLetterTo} uses. */
export interface TopicProducer {
  send(record: { readonly topic: string; readonly messages: DeadLetter[] }): Promise<unknown>;
}

/** A message that is sent to another topic. */
export interface DeadLetter {
  readonly key?: unknown;
  readonly value: unknown;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  /** In milliseconds since 1970. */
  readonly timestamp?: string | undefined;
}

/**
 * Returns a `deadLetter` option of {@link eachMessageOnce} that sends the message to a topic, with the header
 * `onceward-error` added, and with its timestamp.
 */
export function deadLetterTo(
  producer: TopicProducer,
  topic: string,
): (payload: { readonly message: DeadLetter }, error: Error) => Promise<void> {
  return async ({ message: { key, value, headers, timestamp } }, error) => {
    const messages = [{ key, value, timestamp, headers: { ...headers, "onceward-error": error.message } }];
    await producer.send({ topic, messages });
  };
}

/** Returns a function that handles a message, and dead-letters it if needed. Undefined: its offset may move on. */
function createConcludingHandler<Message>(
  onceward: Runner,
  options: KafkaOptions<Message>,
  fn: (message: Message, claim: Claim) => unknown,
  keyOf: (message: Message) => string | undefined,
): (message: Message, signal?: AbortSignal) => Promise<Retry | undefined> {
  const { waitMs = DEFAULT_WAIT_MS } = options;
  const conclude = createConclude(options, ["skip"]);
  const handle = createEffectHandler(onceward, { ...options, waitMs }, keyOf, fn);
  return async (message, signal) => {
    const verdict = await conclude(message, await handle(message, { signal }));
    return verdict.kind === "retry" ? verdict : undefined;
  };
}

/**
 * Returns a message with its operation's key, for the producer: in a Map or an object of headers, whichever the message
 * has. A producer of `@platformatic/kafka` needs serializers of text for headers (`stringSerializers`).
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey<M extends object>(
  key: string,
  message: M & { readonly headers?: object | undefined },
): M & { readonly headers: HeadersOf<M> } {
  const { headers } = message;
  const withIt =
    headers instanceof Map
      ? new Map([...headers, [KEY_HEADER, checkedKey(key)]])
      : { ...headers, [KEY_HEADER]: checkedKey(key) };
  return { ...message, headers: withIt as HeadersOf<M> };
}

/** The headers of a message with its key. */
export type HeadersOf<M> = M extends { readonly headers: ReadonlyMap<unknown, unknown> }
  ? Map<string, string>
  : Record<string, string>;

/** @throws Error if there are several keys. */
function keyOfHeaders(headers: readonly (readonly [unknown, unknown])[]): string | undefined {
  const values = headers.filter(([name]) => `${name}` === KEY_HEADER).flatMap(([, value]) => value);
  if (values.length > 1) throw new Error(`there are ${values.length} ${KEY_HEADER} headers`);
  const [value] = values;
  return value === undefined || value === null ? undefined : `${value}`;
}
