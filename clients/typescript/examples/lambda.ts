/**
 * `npm run example -- lambda`: a Lambda function behind a queue. The loop stands for the event source mapping of SQS: it
 * invokes the handler with a batch, deletes what the answer does not name, and delivers the rest again. Some messages
 * are delivered twice in a batch, and one in six fails at first.
 */

import { createOnceward } from "@onceward/client";
import { KEY_HEADER, readJson, type SqsRecord, sqsBatchOnce } from "@onceward/client/lambda";
import { findService, prove } from "./setup.ts";

const ORDERS = 60;
const BATCH = 10;
const MAX_INVOCATIONS = 100;

const onceward = createOnceward(await findService());
// Each start of the example has its own orders.
const start = crypto.randomUUID();
const charged: string[] = [];
let crashes = 0;

const handler = sqsBatchOnce(
  onceward,
  { namespace: "example-lambda", deadLetter: "broker", onDelivery: () => {} },
  async ({ body }: SqsRecord, claim) => {
    // The claim is released, and the message stays in the queue.
    if (claim.attempt === 1 && crashes < ORDERS / 6) {
      crashes++;
      throw new Error("the provider was down");
    }
    charged.push((readJson(body) as { id: string }).id);
  },
);

function messageOf(id: string): SqsRecord {
  return {
    messageId: crypto.randomUUID(),
    receiptHandle: crypto.randomUUID(),
    body: JSON.stringify({ id }),
    eventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
    attributes: { SentTimestamp: `${Date.now()}` },
    messageAttributes: { [KEY_HEADER]: { stringValue: `${start}-${id}` } },
  };
}

const ids = Array.from({ length: ORDERS }, (_, index) => `order-${index}`);
// The producer sends each order twice.
let queue = ids.flatMap((id) => [messageOf(id), messageOf(id)]);
for (let invocations = 0; queue.length > 0 && invocations < MAX_INVOCATIONS; invocations++) {
  const Records = queue.slice(0, BATCH);
  const deadlineMs = performance.now() + 30_000;
  const context = { getRemainingTimeInMillis: () => deadlineMs - performance.now() };
  const { batchItemFailures } = await handler({ Records }, context);
  const kept = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
  queue = [...queue.slice(BATCH), ...Records.filter(({ messageId }) => kept.has(messageId))];
}

prove("messages are left in the queue", queue.length, 0);
prove("messages failed at first", crashes, ORDERS / 6);
prove("orders were charged", charged.length, ORDERS);
prove("different orders were charged", new Set(charged).size, ORDERS);

await onceward.close();
