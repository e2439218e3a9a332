import { randomUUID } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { KEY_HEADER, messageOnce, withKey } from "../../clients/typescript/src/sqs.ts";
import { cutOff, type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { KEY_OF_2022 } from "../support/adapters/consumer-suite.ts";
import { freePort } from "../support/redis/redis.ts";
import { startJava } from "./java.ts";
import { BROKER_JARS } from "./programs.ts";

/** Starts an empty ElasticMQ, which speaks SQS, on loopback. */
async function startElasticMq(): Promise<{ client: SQSClient; stop: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), "ow-elasticmq-"));
  const port = await freePort();
  const config = join(dir, "elasticmq.conf");
  await writeFile(
    config,
    `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1" }
rest-stats { enabled = false }`,
  );
  const stop = await startJava(dir, port, [`-Dconfig.file=${config}`, "org.elasticmq.server.Main"]);
  const client = new SQSClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "eu-central-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  return {
    client,
    async stop() {
      client.destroy();
      await stop();
    },
  };
}

const newGuard = useGuards();

describe.runIf(BROKER_JARS !== "")("A consumer of SQS", () => {
  let client: SQSClient;
  let stop: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    ({ client, stop } = await startElasticMq());
  });

  afterAll(() => stop?.());

  async function createQueue(attributes: Record<string, string> = {}): Promise<string> {
    const QueueName = `charges-${randomUUID()}`;
    const created = await client.send(new CreateQueueCommand({ QueueName, Attributes: attributes }));
    if (created.QueueUrl === undefined) throw new Error("no queue was made");
    return created.QueueUrl;
  }

  /**
   * Creates a queue with at most two deliveries, and a function that receives and handles its current
   * messages.
   */
  async function newQueue({ onceward, options }: Guarded, fn: Parameters<typeof messageOnce>[2]) {
    const deadUrl = await createQueue();
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: deadUrl, AttributeNames: ["QueueArn"] }),
    );
    const redrive = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: 2 };
    const queueUrl = await createQueue({ VisibilityTimeout: "1", RedrivePolicy: JSON.stringify(redrive) });
    const redelivery = { redeliverAfterMs: 1, deadLetter: "broker" as const };
    const handle = messageOnce(onceward, { ...options, ...redelivery, client, queueUrl }, fn);
    return {
      send: (key: string) =>
        client.send(new SendMessageCommand(withKey(key, { QueueUrl: queueUrl, MessageBody: "{}" }))),
      sendPlain: () => client.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: "{}" })),
      /** Resolves to how many messages came. */
      async receive(): Promise<number> {
        const receive = { QueueUrl: queueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: [KEY_HEADER] };
        const { Messages = [] } = await client.send(
          new ReceiveMessageCommand({ ...receive, WaitTimeSeconds: 2 }),
        );
        await Promise.all(Messages.map(handle));
        return Messages.length;
      },
      /** Resolves to the bodies of what was given up. */
      async dead(): Promise<unknown[]> {
        const receive = { QueueUrl: deadUrl, MaxNumberOfMessages: 10 };
        const { Messages = [] } = await client.send(new ReceiveMessageCommand(receive));
        return Messages.map(({ Body }) => Body);
      },
    };
  }

  test("a message that is sent twice is performed once, and the queue is empty", async () => {
    await using guard = await newGuard();
    const fn = vi.fn();
    const { send, receive } = await newQueue(guard, fn);
    for (let times = 0; times < 2; times++) {
      await send("order-1");
      expect(await receive()).toBe(1);
    }
    expect(await receive()).toBe(0);
    expect(guard.kinds()).toEqual(["processed", "duplicate"]);
    expect(fn).toHaveBeenCalledOnce();
  });

  test("a message whose operation another holder runs comes back, and is deleted once that is done", async () => {
    await using guard = await newGuard();
    const complete = await guard.holdElsewhere("order-1");
    const fn = vi.fn();
    const { send, receive } = await newQueue(guard, fn);
    await send("order-1");
    expect(await receive()).toBe(1);
    await complete();
    // It is hidden until the holder's lease of 30 s would have ended.
    await vi.waitFor(async () => expect(await receive()).toBe(1), 45_000);
    expect(guard.kinds()).toEqual(["postponed", "duplicate"]);
    expect(fn).not.toHaveBeenCalled();
  });

  test("after an outage longer than all receives the message is performed, not dead-lettered", async () => {
    await using guard = await newGuard();
    const { onceward, heal } = await cutOff(guard);
    const fn = vi.fn();
    const { send, receive, dead } = await newQueue({ ...guard, onceward }, fn);
    await send("order-1");
    const received = receive();
    // The queue dead-letters a message that is received a third time.
    await vi.waitFor(() => expect(guard.kinds().length).toBeGreaterThan(3), 20_000);
    expect(await receive()).toBe(0);
    heal();
    expect(await received).toBe(1);
    expect(guard.kinds().at(-1)).toBe("processed");
    expect(fn).toHaveBeenCalledOnce();
    expect(await receive()).toBe(0);
    expect(await dead()).toEqual([]);
  });

  test("messages without a key, and with one that is too old, end in the dead-letter queue", async () => {
    await using guard = await newGuard();
    await guard.refuseLateKeys();
    const { send, sendPlain, receive, dead } = await newQueue(guard, vi.fn());
    await sendPlain();
    await send(KEY_OF_2022);
    const seen: unknown[] = [];
    await vi.waitFor(
      async () => {
        await receive();
        seen.push(...(await dead()));
        expect(seen).toEqual(["{}", "{}"]);
      },
      { timeout: 20_000, interval: 200 },
    );
    expect(guard.kinds()).toEqual(["refused", "refused", "refused", "refused"]);
  });
});
