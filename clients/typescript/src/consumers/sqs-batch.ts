import { OncewardError } from "../errors/errors.ts";
import type { Claim } from "../run/claim.ts";
import { sleep } from "../run/retry.ts";
import { type ConcurrencyOptions, concurrencyOf } from "./concurrency.ts";
import { createConclude, type DeadLetterOptions } from "./dead-letter.ts";
import type { Delivery } from "./delivery.ts";
import { createEffectHandler } from "./handle.ts";
import { waitsForService } from "./hold-message.ts";
import { KEY_HEADER } from "./key.ts";
import { type LambdaContext, type LambdaRunner, untilTimeout } from "./lambda-timeout.ts";
import { withMessageTime } from "./message-time.ts";
import type { ConsumerOptions } from "./options.ts";

/** The part of a message of an SQS event that handlers read; `SQSRecord` of `@types/aws-lambda` has it. */
export interface SqsRecord {
  readonly messageId: string;
  /** What the producer sent, such as JSON. */
  readonly body: string;
  readonly receiptHandle: string;
  /** The ARN of the queue. That of a FIFO queue ends in `.fifo`. */
  readonly eventSourceARN: string;
  readonly attributes: {
    readonly MessageGroupId?: string | undefined;
    /** In milliseconds since 1970. */
    readonly SentTimestamp: string;
  };
  readonly messageAttributes: Readonly<Record<string, { readonly stringValue?: string | undefined }>>;
}

/** The event that an event source mapping of SQS sends: a batch of messages. */
export interface SqsEvent<Message extends SqsRecord> {
  readonly Records: readonly Message[];
}

/** The answer that leaves the named messages in the queue, and deletes the others (`ReportBatchItemFailures`). */
export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/**
 * How a batch is handled. With `deadLetter: "broker"` a message that no retry can help stays in the queue, and goes to the
 * queue's dead-letter queue after `maxReceiveCount` receives; those after it in a FIFO group wait until then. The queue's
 * visibility timeout decides when a message comes again.
 */
export interface SqsBatchOptions<Message>
  extends Omit<ConsumerOptions<Message>, "maxRedeliverAfterMs">,
    ConcurrencyOptions,
    DeadLetterOptions<Message, "skip" | "broker"> {}

/**
 * Returns a Lambda handler of an SQS event source mapping: each message's operation happens once, and the answer names
 * the messages that stay in the queue. The mapping needs `FunctionResponseTypes: ["ReportBatchItemFailures"]`.
 *
 * ```ts
 * export const handler = sqsBatchOnce(
 *   onceward,
 *   { namespace: "charges", deadLetter: "broker" },
 *   async (message: SQSRecord, claim) => {
 *     await provider.charge(readJson(message.body), { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * ```
 *
 * - The key is the message attribute `idempotency-key`; `withKey` of `@onceward/client/sqs` sets it. The function's value
 *   is not kept.
 * - A key that contains no time has the message's `SentTimestamp`. A redrive from the dead-letter queue, and a producer that
 *   sends the operation again, give it a later one.
 * - A message is deleted once its operation is done, now or before.
 * - A message stays in the queue if its function throws, or another holder runs its operation.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request, a key that is too old), the
 *   message goes to `deadLetter` and is deleted. With `"broker"` it stays in the queue.
 * - While the service is unreachable, a message is tried every `redeliverAfterMs` within the same invocation, and stays
 *   in the queue if the invocation has no time left. The rest of the batch then stays without an attempt. So an outage
 *   counts one receive for each visibility timeout, not one for each attempt.
 * - Messages of a FIFO queue are handled in order within their group. After the first of a group that stays, the rest of
 *   the group stays, too, without an attempt, so that the order is kept.
 * - Half a second before the invocation's timeout, all waits end, and `claim.signal` aborts.
 *
 * Required settings: a function timeout longer than `timeoutMs` (15 s) plus the function's longest run; a visibility
 * timeout of six times the function timeout or more, as AWS recommends; `maxReceiveCount` times the visibility timeout
 * longer than the longest outage.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function sqsBatchOnce<Message extends SqsRecord>(
  onceward: LambdaRunner,
  options: SqsBatchOptions<Message>,
  fn: (message: Message, claim: Claim) => unknown,
): (event: SqsEvent<Message>, context: LambdaContext) => Promise<SqsBatchResponse> {
  const concurrency = concurrencyOf(options);
  const handle = createEffectHandler(
    onceward,
    withMessageTime(options, ({ attributes }: Message) => Number(attributes.SentTimestamp)),
    keyOf,
    fn,
  );
  const conclude = createConclude(options, ["skip", "broker"]);
  return ({ Records }, context) =>
    untilTimeout(onceward, context, async (signal) => {
      const settled = new Set<Message>();
      const groups = groupsOf(Records).values();
      const handleGroup = async (group: readonly Message[]) => {
        for (const message of group) {
          if (signal.aborted) return;
          const delivery = await handleUntil(signal, () => handle(message, { signal }));
          const { kind } = await conclude(message, delivery);
          if (kind === "retry" || kind === "reject") return;
          settled.add(message);
        }
      };
      const work = async () => {
        // The workers share the iterator: each takes the next group.
        for (const group of groups) await handleGroup(group);
      };
      await Promise.all(Array.from({ length: Math.min(concurrency, Records.length) }, work));
      const failures = Records.filter((message) => !settled.has(message));
      return { batchItemFailures: failures.map(({ messageId }) => ({ itemIdentifier: messageId })) };
    });
}

/** Handles a message, again and again while the service is unreachable, until the signal aborts. */
async function handleUntil(signal: AbortSignal, handle: () => Promise<Delivery>): Promise<Delivery> {
  for (;;) {
    const delivery = await handle();
    if (!waitsForService(delivery) || signal.aborted) return delivery;
    try {
      await sleep(delivery.delayMs, signal);
    } catch (error) {
      if (error instanceof OncewardError && error === signal.reason) return delivery;
      throw error;
    }
  }
}

/** Returns the messages that are handled one after the other: those of one FIFO group; otherwise each separately. */
function groupsOf<Message extends SqsRecord>(messages: readonly Message[]): readonly (readonly Message[])[] {
  const groups = new Map<string | Message, Message[]>();
  for (const message of messages) {
    // Messages of a standard queue may have a group, too, for its fairness, and no order.
    const isFifo = message.eventSourceARN.endsWith(".fifo");
    const group = isFifo ? (message.attributes.MessageGroupId ?? "") : message;
    const known = groups.get(group);
    if (known === undefined) groups.set(group, [message]);
    else known.push(message);
  }
  return [...groups.values()];
}

function keyOf({ messageAttributes }: SqsRecord): string | undefined {
  return messageAttributes[KEY_HEADER]?.stringValue;
}
