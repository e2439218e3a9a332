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
import { leaseLeftMs } from "./consumers/lease-left.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/**
 * A message can be hidden until 12 hours after its receipt, by the API reference of ChangeMessageVisibility, which
 * refuses more. Ten minutes are for the time between the receipt and the call of the handler.
 */
const MAX_HIDDEN_MS = 12 * 3_600_000 - 600_000;

/** {@link ConsumerOptions}, and the queue of the messages. */
export interface MessageOptions extends ConsumerOptions<Message> {
  /** The client that received the messages: deletes them and changes their visibility. */
  readonly client: SQSClient;
  /** The URL of the queue that the messages come from. */
  readonly queueUrl: string;
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
 * - The key is the attribute `idempotency-key`: the received `MessageAttributeNames` must include it. The function's
 *   value is not kept.
 * - The message is deleted once the operation is settled: done now, done before, or failed permanently (stored by
 *   Onceward).
 * - While another holder runs the operation, the message is hidden until the holder's lease ends, and at least for
 *   `redeliverAfterMs`: an earlier receive would only be counted. If the record is ambiguous, the message is visible again
 *   after `redeliverAfterMs`.
 * - While the service is unreachable, the message is held: kept hidden and tried every `redeliverAfterMs`, for up to
 *   11 hours, so that an outage counts no receives and fills no dead-letter queue. The promise stays pending, so that
 *   a loop as above receives no more messages; `onDelivery` is called for each attempt. Closing the client returns
 *   held messages to the queue.
 * - If the function throws, or the message can't be claimed (no key, the key of another request), the message stays
 *   until its visibility timeout, and after the queue's `maxReceiveCount` goes to its dead-letter queue. To give up
 *   at once, throw a TerminalError.
 * - If the function takes longer than the visibility timeout, the message is delivered again, and that delivery is
 *   postponed.
 *
 * Required settings of the queue:
 *
 * - Visibility timeout: longer than `timeoutMs` (15 s) plus the function's longest run, so that a message is held or
 *   handled before it is visible again.
 * - `maxReceiveCount` of its redrive policy: at least the number of attempts for a function that throws, and, for a
 *   message whose operation another holder runs, one for each lease that the holder's run lasts: with a lease of 30 s and
 *   runs of up to a minute, 2 more. For policy HOLD, also one for each `redeliverAfterMs` until a record is resolved.
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
    const hiddenUntilMs = performance.now() + MAX_HIDDEN_MS;
    const hide = (forMs: number) => {
      const leftMs = Math.max(0, hiddenUntilMs - performance.now());
      const VisibilityTimeout = Math.ceil(Math.min(leftMs, forMs) / 1000);
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
        await hide(Math.max(delivery.delayMs, leaseLeftMs(delivery.error)));
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

function deliveryIdsOf({ MessageId, ReceiptHandle }: Message) {
  return [MessageId, ReceiptHandle];
}
