import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  type MessageAttributeValue,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { createHandler } from "./consumers/handle.ts";
import { handleHeld } from "./consumers/hold-message.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** Of a visibility timeout, by the API reference of ChangeMessageVisibility: 12 hours. */
const MAX_VISIBILITY_S = 43_200;

/** {@link ConsumerOptions}, and the queue that the messages came from. */
export interface MessageOptions extends ConsumerOptions<Message> {
  readonly client: SQSClient;
  readonly queueUrl: string;
}

/**
 * Handles a received message so that its operation happens once, however often SQS or the producer delivers it.
 *
 * ```ts
 * await client.send(new SendMessageCommand(withKey(order.id, { QueueUrl, MessageBody: JSON.stringify(order) })));
 *
 * const handle = messageOnce(
 *   onceward,
 *   { client, queueUrl: QueueUrl, namespace: "charges" },
 *   async (message, claim) => {
 *     const order = readJson(message.Body);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * const receive = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageAttributeNames: [KEY_HEADER] };
 * while (!stopping) {
 *   const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
 *   await Promise.all(Messages.map(handle));
 * }
 * ```
 *
 * - The key is the attribute `idempotency-key`: it has to be among the `MessageAttributeNames` that are received. What the
 *   function returns is not kept.
 * - Deleted once the operation is settled: done now, done before, or failed for good (which Onceward has stored).
 * - While somebody else is doing it, or the record is ambiguous: visible again after `redeliverAfterMs`, which counts a
 *   receive.
 * - While the service is away, the message is held: kept hidden and tried every `redeliverAfterMs`, for up to 11 hours, so
 *   that an outage counts no receives and fills no dead-letter queue. The promise is pending meanwhile, so that a loop as
 *   above receives no more; `onDelivery` is told of each attempt. Closing the client gives held messages back.
 * - What the function throws, and a message that can't be claimed (no key, the key of another request), leave the message
 *   to its visibility timeout, and, after the queue's `maxReceiveCount`, to its dead-letter queue. To give up at once,
 *   throw a TerminalError.
 * - A function that takes longer than the visibility timeout is delivered again meanwhile, and that delivery postponed.
 *
 * What the queue's settings must be:
 *
 * - Visibility timeout: longer than `timeoutMs` (15 s) and the function's longest run together, so that a message is held or
 *   handled before it is visible again.
 * - `maxReceiveCount` of its redrive policy: at least the attempts that a function which throws is to have, and, for a
 *   message that somebody else is doing, one for each `redeliverAfterMs` of the longest lease: with a lease of 30 s and 5 s, 6
 *   more.
 * - Retention period: longer than the longest outage.
 * - The consumer's role may call `sqs:ChangeMessageVisibility` and `sqs:DeleteMessage`.
 *
 * The promise rejects only if SQS can't be told; the message then comes again, as a duplicate.
 *
 * @throws OncewardError INVALID_REQUEST for options that can't be meant.
 */
export function messageOnce(
  onceward: Runner,
  options: MessageOptions,
  fn: (message: Message, claim: Claim) => unknown,
): (message: Message) => Promise<void> {
  checkFunction("fn", fn);
  const { client, queueUrl: QueueUrl } = options;
  const handle = createHandler(
    onceward,
    options,
    { keyOf, deliveryIdsOf },
    async (message, claim) => void (await fn(message, claim)),
  );
  return async (message) => {
    const { ReceiptHandle } = message;
    const hide = (forMs: number) => {
      const VisibilityTimeout = Math.min(MAX_VISIBILITY_S, Math.ceil(forMs / 1000));
      return client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }));
    };
    const delivery = await handleHeld(() => handle(message), hide);
    switch (delivery.kind) {
      case "processed":
      case "duplicate":
      case "failed":
        await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
        return;
      case "postponed":
        await hide(delivery.delayMs);
        return;
      case "refused":
      case "released":
        return;
      default:
        return delivery satisfies never;
    }
  };
}

type Attributes = Record<string, MessageAttributeValue>;

/**
 * What is sent (a message, or an entry of a batch) with its operation's key, for the producer.
 *
 * @throws OncewardError INVALID_REQUEST for what can't be a key.
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

function deliveryIdsOf({ MessageId, ReceiptHandle }: Message) {
  return [MessageId, ReceiptHandle];
}
