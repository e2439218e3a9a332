import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Message, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { createTestingOnceward } from "@onceward/client/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  KEY_HEADER,
  type MessageOptions,
  messageOnce,
  readJson,
  withKey,
} from "../../../clients/typescript/src/sqs.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { cutOff, eventually, type Guarded, newTimedGuard, useGuards } from "./fixtures.ts";

interface SqsCall {
  readonly action: string;
  readonly input: Record<string, unknown>;
}

/**
 * Starts an endpoint with recorded answers of SQS (JSON protocol 1.0), and the SDK's client of it. It has no
 * queue; tests with a real one are in `test/brokers/`.
 */
async function startSqsEndpoint(answers: Readonly<Record<string, unknown>> = {}) {
  const calls: SqsCall[] = [];
  const refusals = new Map<string, string>();
  const server = createServer(async (request, response) => {
    const body = await request.toArray();
    const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "");
    calls.push({ action, input: JSON.parse(Buffer.concat(body).toString()) });
    response.setHeader("content-type", "application/x-amz-json-1.0");
    const refusal = refusals.get(action);
    if (refusal !== undefined) response.statusCode = 400;
    const answer =
      refusal === undefined ? (answers[action] ?? {}) : { __type: `com.amazonaws.sqs#${refusal}` };
    response.end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new SQSClient({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: "eu-central-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  onTestFinished(async () => {
    client.destroy();
    server.close();
    await once(server, "close");
  });
  /** Refuses an action from now on with this type of error. */
  const refuse = (action: string, type: string) => void refusals.set(action, type);
  return { client, calls, refuse };
}

const QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/charges";

const newGuard = useGuards();

async function consumer(
  { onceward, options }: Pick<Guarded, "onceward" | "options">,
  fn: Parameters<typeof messageOnce>[2],
  {
    body = '{"amount":100}',
    attributes = withKey("order-1", {}).MessageAttributes,
    sentMs = Date.now(),
    ...more
  }: Received = {},
) {
  const message: Message = {
    MessageId: "d6790f8d-d575-4f01-bc51-40122EXAMPLE",
    ReceiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a...",
    MD5OfBody: md5(body),
    Body: body,
    MessageAttributes: attributes,
    Attributes: { SentTimestamp: `${sentMs}` },
  };
  const { client, calls, refuse } = await startSqsEndpoint({ ReceiveMessage: { Messages: [message] } });
  const settings = {
    ...options,
    client,
    queueUrl: QUEUE_URL,
    deadLetter: "skip" as const,
    tooOld: "skip" as const,
    ...more,
  };
  const handle = messageOnce(onceward, settings, fn);
  return {
    calls,
    refuse,
    async receive() {
      const receive = { QueueUrl: QUEUE_URL, MessageAttributeNames: [KEY_HEADER] };
      const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
      calls.length = 0;
      await Promise.all(Messages.map(handle));
    },
  };
}

/** Returns the checksum that the SDK verifies for a body. */
function md5(body: string): string {
  return createHash("md5").update(body).digest("hex");
}

interface Received extends Partial<MessageOptions> {
  readonly body?: string;
  readonly attributes?: NonNullable<Message["MessageAttributes"]>;
  readonly sentMs?: number;
}

const deletion = {
  action: "DeleteMessage",
  input: { QueueUrl: QUEUE_URL, ReceiptHandle: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a..." },
};

describeConsumerAdapter(test, (onceward, options, fn) => ({
  async deliver({ key, body }) {
    const { client, calls } = await startSqsEndpoint();
    const quiet = {
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      redeliverAfterMs: 50,
      onDelivery: () => {},
    };
    const settings = { ...options, ...quiet, client, queueUrl: QUEUE_URL };
    const handle = messageOnce(onceward, settings, (message, claim) => fn(`${message.Body}`, claim));
    const attributes = key === undefined ? {} : withKey(key, {}).MessageAttributes;
    await handle({ Body: body, ReceiptHandle: "receipt", MessageAttributes: attributes });
    return calls.some(({ action }) => action === "DeleteMessage") ? "settled" : "kept";
  },
}));

test("a key without a time gets its message's; a late message goes to its destination", async () => {
  const guard = newTimedGuard();
  const tooOld = vi.fn();
  for (const sentMs of [Date.now(), Date.now() - 120_000]) {
    const attributes = withKey(`order-${sentMs}`, {}).MessageAttributes;
    const { receive, calls } = await consumer(guard, vi.fn(), { attributes, sentMs, tooOld });
    await receive();
    expect(calls).toMatchObject([{ action: "DeleteMessage" }]);
  }
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  expect(tooOld).toHaveBeenCalledOnce();
});

test.each([
  ["until the holder's lease ends", { visibilityTimeoutMs: 3000 }, 20, 30],
  ["for the visibility timeout, if that is longer", { visibilityTimeoutMs: 600_000 }, 600, 600],
  ["for redeliverAfterMs, if that is longer", { redeliverAfterMs: 60_000 }, 60, 60],
  [
    "for the 12 hours that SQS allows, less ten minutes, at most",
    { redeliverAfterMs: 50_000_000 },
    42_600,
    42_600,
  ],
] as const)(
  "while another consumer processes it, a message is hidden %s",
  async (_, settings, atLeastS, atMostS) => {
    await using guard = await newGuard();
    await guard.holdElsewhere("order-1");
    const fn = vi.fn();
    const { receive, calls } = await consumer(guard, fn, settings);
    await receive();
    const input = { ...deletion.input, VisibilityTimeout: expect.any(Number) };
    expect(calls).toEqual([{ action: "ChangeMessageVisibility", input }]);
    const { VisibilityTimeout } = calls[0]?.input ?? {};
    expect(VisibilityTimeout).toBeGreaterThanOrEqual(atLeastS);
    expect(VisibilityTimeout).toBeLessThanOrEqual(atMostS);
    expect(fn).not.toHaveBeenCalled();
  },
);

test("an ambiguous record's message is hidden for ambiguousAfterMs, not redeliverAfterMs", async () => {
  await using guard = await newGuard();
  await guard.holdExpired();
  await guard.onceward.calls.claim({ namespace: "charges", key: "order-1", owner: "dead" });
  await guard.endLeases();
  const fn = vi.fn();
  for (const [ambiguousAfterMs, VisibilityTimeout] of [
    [undefined, 300],
    [3_600_000, 3600],
  ] as const) {
    const { receive, calls } = await consumer(guard, fn, { ambiguousAfterMs });
    await receive();
    const input = { ...deletion.input, VisibilityTimeout };
    expect(calls).toEqual([{ action: "ChangeMessageVisibility", input }]);
  }
  expect(fn).not.toHaveBeenCalled();
});

test.each([
  "DATABASE_UNAVAILABLE",
  "TENANT_MOVING",
  "RESPONSE_TOO_LARGE",
  "OVERLOADED",
  "CREDENTIAL_INVALID",
] as const)("while the service answers %s, a message is held, and costs no receive", async (reason) => {
  await using guard = await newGuard();
  await using world = createTestingOnceward();
  world.faults.failNext("claim", reason, Number.POSITIVE_INFINITY);
  const own = { ...guard, onceward: world.onceward };
  const { receive, calls } = await consumer(own, vi.fn(), { redeliverAfterMs: 10, timeoutMs: 30 });
  const received = receive();
  await eventually(() => expect(guard.kinds().length).toBeGreaterThan(2));
  world.faults.clear();
  await received;
  expect(guard.kinds().at(-1)).toBe("processed");
  expect(calls.map(({ action }) => action)).toEqual([
    ...Array(guard.kinds().length - 1).fill("ChangeMessageVisibility"),
    "DeleteMessage",
  ]);
});

test.each([
  ["visibilityTimeoutMs", 2999],
  ["ambiguousAfterMs", Number.NaN],
])("an invalid %s is refused", async (name, value) => {
  await using guard = await newGuard();
  await expect(consumer(guard, vi.fn(), { [name]: value })).rejects.toThrow(`${name} must be`);
});

const hidden = { action: "ChangeMessageVisibility", input: { ...deletion.input, VisibilityTimeout: 31 } };

test("a held message stays hidden while its function runs", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using guard = await newGuard();
  const { onceward, heal } = await cutOff(guard);
  const begun = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const fn = () => {
    begun.resolve();
    return finish.promise;
  };
  const { receive, calls } = await consumer({ ...guard, onceward }, fn, { redeliverAfterMs: 1000 });
  const received = receive();
  await eventually(() => expect(calls).toEqual([hidden]));
  heal();
  await begun.promise;
  const before = calls.length;
  vi.advanceTimersByTime(30_000);
  const extended = { ...hidden, input: { ...hidden.input, VisibilityTimeout: 30 } };
  await eventually(() => expect(calls.slice(before)).toEqual([extended, extended, extended]));
  const timers = vi.getTimerCount();
  finish.resolve();
  await received;
  expect(calls.at(-1)).toEqual(deletion);
  expect(vi.getTimerCount()).toBe(timers - 1);
});

test("a message's hiding is extended by a visibility timeout after every third of it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using guard = await newGuard();
  const { receive, calls } = await consumer(
    guard,
    async () => {
      vi.advanceTimersByTime(6_000);
      await eventually(() => expect(calls).toHaveLength(2));
    },
    { visibilityTimeoutMs: 9_000 },
  );
  await receive();
  const extended = { ...hidden, input: { ...hidden.input, VisibilityTimeout: 9 } };
  expect(calls).toEqual([extended, extended, deletion]);
});

test("a held message becomes visible when the client is closed", async () => {
  await using guard = await newGuard();
  const { onceward } = await cutOff(guard);
  const { receive, calls } = await consumer({ ...guard, onceward }, vi.fn(), { redeliverAfterMs: 50 });
  const received = receive();
  await eventually(() => expect(guard.kinds().length).toBeGreaterThan(1));
  await onceward.close();
  await received;
  expect(guard.deliveries.at(-1)).toMatchObject({ kind: "postponed", error: { reason: "CLOSED" } });
  expect(calls.at(-1)).toMatchObject({ action: "ChangeMessageVisibility", input: { VisibilityTimeout: 1 } });
});

test("a message that SQS no longer hides is not held any longer", async () => {
  await using guard = await newGuard();
  const { onceward } = await cutOff(guard);
  const { receive, refuse } = await consumer({ ...guard, onceward }, vi.fn(), { redeliverAfterMs: 50 });
  const received = receive();
  await eventually(() => expect(guard.kinds().length).toBeGreaterThan(1));
  refuse("ChangeMessageVisibility", "ReceiptHandleIsInvalid");
  await expect(received).rejects.toThrow(expect.objectContaining({ name: "ReceiptHandleIsInvalid" }));
});

test("a message is hidden twice as long after each error, up to maxRedeliverAfterMs", async () => {
  await using guard = await newGuard();
  const fn = vi.fn().mockRejectedValue(new Error("the provider is down"));
  const delays = { visibilityTimeoutMs: 3000, redeliverAfterMs: 4000, maxRedeliverAfterMs: 14_000 };
  const { receive, calls } = await consumer(guard, fn, delays);
  const hiddenS: unknown[] = [];
  for (let times = 0; times < 4; times++) {
    await receive();
    hiddenS.push(...calls.map(({ input }) => input.VisibilityTimeout));
  }
  expect(hiddenS).toEqual([4, 8, 14, 14]);
});

test.each([
  ["without a key", { attributes: {} }],
  ["whose key belongs to another request", { body: '{"amount":200}' }],
])("a message %s is left to the queue's dead-letter queue, and nothing runs", async (_, received) => {
  await using guard = await newGuard();
  const fingerprint = ({ Body }: Message) => readJson(Body);
  const first = await consumer(guard, () => {}, { fingerprint });
  await first.receive();
  const fn = vi.fn();
  const { receive, calls } = await consumer(guard, fn, { fingerprint, deadLetter: "broker", ...received });
  await receive();
  expect(calls).toEqual([]);
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  expect(fn).not.toHaveBeenCalled();
});

test("the producer's key is sent with its other attributes", async () => {
  const { client, calls } = await startSqsEndpoint({ SendMessage: { MD5OfMessageBody: md5("{}") } });
  const other = { DataType: "String", StringValue: "a" };
  const message = { QueueUrl: QUEUE_URL, MessageBody: "{}", MessageAttributes: { shop: other } };
  await client.send(new SendMessageCommand(withKey("order-1", message)));
  const key = { DataType: "String", StringValue: "order-1" };
  expect(calls).toMatchObject([
    { action: "SendMessage", input: { MessageAttributes: { shop: other, [KEY_HEADER]: key } } },
  ]);
});
