import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  type MessageAttributeValue,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { createConclude, type DeadLetterOptions } from "./consumers/dead-letter.ts";
import type { Delivery } from "./consumers/delivery.ts";
import { createEffectHandler } from "./consumers/handle.ts";
import { handleHeld, MAX_HOLD_MS } from "./consumers/hold-message.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { leaseLeftMs } from "./consumers/lease-left.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import { type ConsumerOptions, redeliveryOf } from "./consumers/options.ts";
import { AmbiguousError, InProgressError } from "./errors/errors.ts";
import { refusedField } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/**
 * A message can be hidden until 12 hours after its receipt, by the API reference of ChangeMessageVisibility, which
 * refuses more. Ten minutes are for the time between the receipt and the call of the handler.
 */
const MAX_HIDDEN_MS = 12 * 3_600_000 - 600_000;

/** A third of it is a second, the unit of SQS. */
const MIN_VISIBILITY_TIMEOUT_MS = 3000;
/** The visibility timeout of a queue that sets none. */
const DEFAULT_VISIBILITY_TIMEOUT_MS = 30_000;
/** Time for a resolver or an administrator, even with a `maxReceiveCount` of 3. */
const DEFAULT_AMBIGUOUS_AFTER_MS = 300_000;

/**
 * How a message of a queue is handled. With `deadLetter: "broker"` a message that no retry can help stays in the queue, and
 * goes to the queue's dead-letter queue after `maxReceiveCount` receives.
 */
export interface MessageOptions
  extends ConsumerOptions<Message>,
    DeadLetterOptions<Message, "skip" | "broker"> {
  /** The client that received the messages: deletes them and changes their visibility. */
  readonly client: SQSClient;
  /** The URL of the queue that the messages come from. */
  readonly queueUrl: string;
  /**
   * The queue's visibility timeout, in milliseconds: from 3,000 to 39,600,000 (11 hours). While a message is handled, it is
   * hidden for as long again after every third of it. Default: 30,000, as SQS' own.
   */
  readonly visibilityTimeoutMs?: number | undefined;
  /**
   * How long a message is hidden whose record is ambiguous, in milliseconds: until it is resolved, each time costs a
   * receive. From 0 to 39,600,000 (11 hours). Default: 300,000.
   */
  readonly ambiguousAfterMs?: number | undefined;
}

/**
 * Returns a function that handles a received message so that its operation happens once, however often SQS or the
 * producer delivers it.
 *
 * ```ts
 * await client.send(new SendMessageCommand(withKey(order.id, { QueueUrl, MessageBody: JSON.stringify(order) })));
 *
 * const handle = messageOnce(
 *   onceward,
 *   { client, queueUrl: QueueUrl, namespace: "charges", deadLetter: "broker" },
 *   async (message, claim) => {
 *     const order = readJson(message.Body);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * const receive: ReceiveMessageCommandInput = {
 *   QueueUrl,
 *   MaxNumberOfMessages: 10,
 *   WaitTimeSeconds: 20,
 *   MessageAttributeNames: [KEY_HEADER],
 *   MessageSystemAttributeNames: ["SentTimestamp"],
 * };
 * while (!stopping) {
 *   const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
 *   await Promise.all(Messages.map(handle));
 * }
 * ```
 *
 * - The key is the attribute `idempotency-key`: the received `MessageAttributeNames` must include it. The function's
 *   value is not kept.
 * - A key that contains no time has the message's `SentTimestamp`, if the received `MessageSystemAttributeNames` include it.
 *   A redrive from the dead-letter queue, and a producer that sends the operation again, give it a later one.
 * - The message is deleted once the operation is done, now or before.
 * - While its function runs, the message stays hidden, for up to 11 hours.
 * - While another holder runs the operation, the message is hidden until the holder's lease ends, and at least for
 *   `visibilityTimeoutMs` and `redeliverAfterMs`: an earlier receive would only be counted. If the record is ambiguous,
 *   the message is hidden for `ambiguousAfterMs`.
 * - While the service is unreachable, refuses calls for now (RESOURCE_EXHAUSTED) or moves the tenant, the message is
 *   held: kept hidden and tried every `redeliverAfterMs`, for up to 11 hours, so that an outage counts no receives and
 *   fills no dead-letter queue. The promise stays pending, so that a loop as above receives no more messages;
 *   `onDelivery` is called for each attempt. Closing the client returns held messages to the queue.
 * - If the function throws, the message is hidden for a delay that doubles, at least for `visibilityTimeoutMs`, until
 *   `maxAttempts` is reached, or the queue's `maxReceiveCount`.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request, a key that is too old), the
 *   message goes to `deadLetter` and is deleted. With `"broker"` it stays until its visibility timeout, and after the
 *   queue's `maxReceiveCount` goes to its dead-letter queue; without a redrive policy it stays until its retention ends.
 *
 * Required settings of the queue:
 *
 * - Visibility timeout: that of `visibilityTimeoutMs`, and longer than `timeoutMs` (15 s), so that a message is held
 *   before it is visible again.
 * - `maxReceiveCount` of its redrive policy: at least the number of attempts for a function that throws, and, for a
 *   message whose operation another holder runs, one for each `visibilityTimeoutMs` that the holder's run lasts. For
 *   policy HOLD, also one for each `ambiguousAfterMs` until a record is resolved: a record that no one resolves ends in
 *   the dead-letter queue.
 * - Retention period: longer than the longest outage.
 * - The consumer's role may call `sqs:ChangeMessageVisibility` and `sqs:DeleteMessage`.
 *
 * The promise rejects only if a call to SQS fails; the message is then delivered again, as a duplicate.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function messageOnce(
  onceward: Runner,
  options: MessageOptions,
  fn: (message: Message, claim: Claim) => unknown,
): (message: Message) => Promise<void> {
  const { client, queueUrl: QueueUrl } = options;
  const {
    visibilityTimeoutMs = DEFAULT_VISIBILITY_TIMEOUT_MS,
    ambiguousAfterMs = DEFAULT_AMBIGUOUS_AFTER_MS,
  } = options;
  checkDuration("visibilityTimeoutMs", visibilityTimeoutMs, MIN_VISIBILITY_TIMEOUT_MS);
  checkDuration("ambiguousAfterMs", ambiguousAfterMs, 0);
  const handle = createEffectHandler(
    onceward,
    withMessageTime(options, ({ Attributes }: Message) => Number(Attributes?.SentTimestamp)),
    keyOf,
    fn,
  );
  const conclude = createConclude(options, ["skip", "broker"]);
  const { redeliverAfterMs } = redeliveryOf(options);
  /** Returns how long a message stays hidden that is not held: each time costs a receive. */
  function hiddenMs(delivery: Delivery, delayMs: number): number {
    if (delivery.kind !== "postponed") return Math.max(delayMs, visibilityTimeoutMs);
    const { error } = delivery;
    if (error instanceof InProgressError) return Math.max(delayMs, leaseLeftMs(error), visibilityTimeoutMs);
    return error instanceof AmbiguousError ? Math.max(redeliverAfterMs, ambiguousAfterMs) : delayMs;
  }

  return async (message) => {
    const { ReceiptHandle } = message;
    const hiddenUntilMs = performance.now() + MAX_HIDDEN_MS;
    const hide = (forMs: number) => {
      const leftMs = Math.max(0, hiddenUntilMs - performance.now());
      const VisibilityTimeout = Math.ceil(Math.min(leftMs, forMs) / 1000);
      return client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }));
    };
    const [delivery, verdict] = await handleHeld(
      () => handle(message),
      async (delivery) => [delivery, await conclude(message, delivery)] as const,
      hide,
      visibilityTimeoutMs,
    );
    switch (verdict.kind) {
      case "acknowledge":
      case "discard":
        await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
        return;
      case "retry":
        await hide(hiddenMs(delivery, verdict.delayMs));
        return;
      case "reject":
        return;
      default:
        return verdict satisfies never;
    }
  };
}

function checkDuration(name: string, ms: number, atLeastMs: number): void {
  if (!(ms >= atLeastMs && ms <= MAX_HOLD_MS)) {
    throw refusedField(name, `must be ${atLeastMs}-${MAX_HOLD_MS} milliseconds`);
  }
}

type Attributes = Record<string, MessageAttributeValue>;

/**
 * Returns a message to send, or an entry of a batch, with its operation's key. For the producer.
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey<M extends object>(
  key: string,
  message: M & { readonly MessageAttributes?: Attributes | undefined },
): M & { readonly MessageAttributes: Attributes } {
  const attribute: MessageAttributeValue = { DataType: "String", StringValue: checkedKey(key) };
  return { ...message, MessageAttributes: { ...message.MessageAttributes, [KEY_HEADER]: attribute } };
}

function keyOf({ MessageAttributes }: Message): string | undefined {
  return MessageAttributes?.[KEY_HEADER]?.StringValue;
}
