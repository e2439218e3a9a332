import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { type ChannelModel, type ConfirmChannel, type ConsumeMessage, connect } from "amqplib";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import {
  KEY_HEADER,
  type MessageOptions,
  messageOnce,
  withKey,
} from "../../../clients/typescript/src/rabbitmq.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { type RabbitMqBroker, startBroker } from "../../support/brokers/rabbitmq-broker.ts";
import { collectWarnings, eventually, type Guarded, newCrowd, newTimedGuard, useGuards } from "./fixtures.ts";
import { startRabbitMqWorker } from "./rabbitmq-worker-process.ts";

/** Runs tests that need a RabbitMQ; skips them if none is installed, which the setup prints. */
function describeWithRabbitMq(title: string, tests: () => void): void {
  describe.runIf(inject("rabbitmqDir") !== "")(title, tests);
}

const RABBITMQ_START_TIMEOUT_MS = 120_000;

function startRabbitMq(): Promise<RabbitMqBroker> {
  return startBroker(inject("rabbitmqDir"));
}

async function connectTo({ url }: RabbitMqBroker): Promise<{ connection: ChannelModel } & AsyncDisposable> {
  const connection = await connect(url);
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

interface Queue {
  readonly connection: ChannelModel;
  readonly channel: ConfirmChannel;
  readonly queue: string;
}

const newGuard = useGuards();

describeWithRabbitMq("A consumer of RabbitMQ", () => {
  let rabbitmq: RabbitMqBroker;

  beforeAll(async () => {
    rabbitmq = await startRabbitMq();
  }, RABBITMQ_START_TIMEOUT_MS);

  afterAll(() => rabbitmq?.stop());

  async function newQueue() {
    const { connection, ...rest } = await connectTo(rabbitmq);
    onTestFinished(() => rest[Symbol.asyncDispose]());
    const channel = await connection.createConfirmChannel();
    const queue = `charges-${randomUUID()}`;
    const dead = `${queue}.dead`;
    await channel.assertQueue(dead);
    await channel.assertQueue(queue, { deadLetterExchange: "", deadLetterRoutingKey: dead });
    return { queue, dead, channel, connection };
  }

  function send(channel: ConfirmChannel, queue: string, key: string, body: string): void {
    channel.sendToQueue(queue, Buffer.from(body), withKey(key, { persistent: true, headers: { shop: "a" } }));
  }

  async function consume(
    { onceward, options }: Pick<Guarded, "onceward" | "options">,
    { queue, channel }: Omit<Queue, "connection">,
    fn: Parameters<typeof messageOnce>[2],
    more: Partial<MessageOptions> = {},
  ): Promise<void> {
    const settings = {
      ...options,
      channel,
      queue,
      deadLetter: "broker" as const,
      redeliverAfterMs: 50,
      ...more,
    };
    const handle = await messageOnce(onceward, settings, fn);
    await channel.consume(queue, (message) => void (message && handle(message)));
  }

  /**
   * Fails unless the queue and its retry queue are empty and no message is unacknowledged: such a message is
   * in the queue again once the channel closes.
   */
  async function expectSettled({ connection, channel, queue }: Queue): Promise<void> {
    await channel.close();
    const fresh = await connection.createChannel();
    expect(await fresh.checkQueue(queue)).toMatchObject({ messageCount: 0 });
    expect(await fresh.checkQueue(`${queue}.retry-50`)).toMatchObject({ messageCount: 0 });
  }

  async function deadLetter(channel: ConfirmChannel, dead: string): Promise<ConsumeMessage> {
    return await eventually(async () => {
      const message = await channel.get(dead, { noAck: true });
      if (message === false) throw new Error("nothing is dead-lettered");
      return message as unknown as ConsumeMessage;
    });
  }

  test("at most `concurrency` functions run at once, also without a prefetch count", async () => {
    await using guard = await newGuard();
    const { queue, channel } = await newQueue();
    const crowd = newCrowd();
    const delivered = vi.fn();
    const settings = { ...guard.options, channel, queue, deadLetter: "broker" as const, concurrency: 2 };
    const handle = await messageOnce(guard.onceward, settings, crowd.work);
    await channel.consume(queue, (message) => {
      delivered();
      void (message && handle(message));
    });
    for (let order = 0; order < 5; order++) send(channel, queue, `order-${order}`, "{}");
    await eventually(() => expect(delivered).toHaveBeenCalledTimes(5));
    await guard.onceward.run({ namespace: "charges", key: "another" }, () => {});
    crowd.end();
    await eventually(() => expect(guard.kinds()).toEqual(Array(5).fill("processed")));
    expect(crowd.most()).toBe(2);
  });

  describeConsumerAdapter(test, async (onceward, options, fn) => {
    const { queue, channel } = await newQueue();
    const quiet = { deadLetter: "broker" as const, redeliverAfterMs: 50, onDelivery: () => {} };
    const settings = { ...options, ...quiet, channel, queue };
    const handle = await messageOnce(onceward, settings, ({ content }, claim) => fn(`${content}`, claim));
    return {
      async deliver({ key, body }) {
        channel.sendToQueue(queue, Buffer.from(body), key === undefined ? {} : withKey(key));
        await channel.waitForConfirms();
        // A message that was kept may be the next one, too: it has the same key.
        const message = await channel.get(queue);
        if (message === false) throw new Error("no message came");
        const sentLater = vi.spyOn(channel, "sendToQueue");
        await handle(message as unknown as ConsumeMessage);
        const isKept = sentLater.mock.calls.length > 0;
        sentLater.mockRestore();
        return isKept ? "kept" : "settled";
      },
    };
  });

  test.each([
    ["in seconds", 1000],
    ["in milliseconds", 1],
  ])("a key without a time has the timestamp of its message, %s, also after a retry", async (_, unitMs) => {
    const guard = newTimedGuard();
    const { channel, queue } = await newQueue();
    const timestamp = Math.floor(Date.now() / unitMs);
    const seen: unknown[] = [];
    await consume(guard, { channel, queue }, ({ properties }) => {
      seen.push(properties.timestamp);
      if (seen.length === 1) throw new Error("the provider is down");
    });
    channel.sendToQueue(queue, Buffer.from("{}"), withKey("order-1", { timestamp }));
    await eventually(() => expect(guard.kinds()).toEqual(["released", "processed"]));
    expect(seen).toEqual([timestamp, timestamp]);
  });

  test("a message is delivered again as it was sent", async () => {
    await using guard = await newGuard();
    const { connection, channel, queue } = await newQueue();
    const seen: ConsumeMessage[] = [];
    await consume(guard, { channel, queue }, (message) => {
      seen.push(message);
      if (seen.length < 3) throw new Error("the provider is down");
    });
    const sent = { type: "charge", messageId: "m-1", correlationId: "c-1", persistent: true, priority: 3 };
    const { queue: copies } = await channel.assertQueue("", { exclusive: true });
    const headers = { shop: "a", nested: { list: [1, "two"] }, CC: [copies] };
    channel.sendToQueue(queue, Buffer.from("body"), withKey("order-1", { ...sent, headers }));
    await eventually(() => expect(guard.kinds()).toEqual(["released", "released", "processed"]));
    const [first, , last] = seen;
    expect(last?.content.toString()).toBe("body");
    const { headers: lastHeaders = {}, ...lastProperties } = last?.properties ?? {};
    const { headers: firstHeaders = {}, ...firstProperties } = first?.properties ?? {};
    expect(lastProperties).toEqual(firstProperties);
    const { CC, ...own } = firstHeaders;
    expect(lastHeaders).toMatchObject({ ...own, "x-death": [{ count: 1 }] });
    // Other queues that got a copy of the message do not get its redelivery.
    expect(CC).toEqual([copies]);
    expect(await channel.checkQueue(copies)).toMatchObject({ messageCount: 1 });
    await expectSettled({ connection, channel, queue });
  });

  test("a failing message goes through a queue for each delay, then is dead-lettered", async () => {
    await using guard = await newGuard();
    const { channel, queue, dead } = await newQueue();
    const fn = vi.fn().mockRejectedValue(new Error("a defect"));
    await consume(guard, { channel, queue }, fn, { maxAttempts: 3 });
    send(channel, queue, "order-1", "1");
    expect((await deadLetter(channel, dead)).content.toString()).toBe("1");
    expect(guard.kinds()).toEqual(["released", "released", "failed"]);
    for (const ms of [50, 100]) {
      expect(await channel.checkQueue(`${queue}.retry-${ms}`)).toMatchObject({ messageCount: 0 });
    }
  });

  test("a connection that breaks before a retry queue's confirmation ends the handling", async () => {
    await using guard = await newGuard();
    const { channel, queue } = await newQueue();
    const { connection } = await connectTo(rabbitmq);
    connection.on("error", () => {});
    const doomed = await connection.createConfirmChannel();
    const settings = {
      ...guard.options,
      channel: doomed,
      queue,
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      redeliverAfterMs: 50,
    };
    const handle = await messageOnce(guard.onceward, settings, () => {
      throw new Error("the provider is down");
    });
    send(channel, queue, "order-1", "{}");
    const message = await eventually(async () => {
      const received = await doomed.get(queue);
      if (received === false) throw new Error("no message came");
      return received as unknown as ConsumeMessage;
    });
    // The confirm can't come in the same turn of the event loop in which the message is sent.
    const sendToQueue = doomed.sendToQueue.bind(doomed);
    vi.spyOn(doomed, "sendToQueue").mockImplementation((...args) => {
      const isSent = sendToQueue(...args);
      (connection as unknown as { connection: { stream: Socket } }).connection.stream.destroy(
        new Error("reset"),
      );
      return isSent;
    });
    await handle(message);
    expect(guard.kinds()).toEqual(["released"]);
  });

  test("a message that the broker does not confirm within 30 s returns to its queue", async () => {
    await using guard = await newGuard();
    const { channel, queue } = await newQueue();
    const warnings = collectWarnings();
    onTestFinished(() => void vi.useRealTimers());
    const settings = { ...guard.options, channel, queue, deadLetter: "broker" as const };
    const handle = await messageOnce(guard.onceward, settings, () => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      throw new Error("the provider is down");
    });
    send(channel, queue, "order-1", "{}");
    await channel.waitForConfirms();
    const receive = async () => {
      const message = await channel.get(queue);
      if (message === false) throw new Error("no message came");
      return message as unknown as ConsumeMessage;
    };
    const message = await receive();
    // As where the retry queue, a quorum queue, has lost its majority: no confirm ever comes.
    const sent = Promise.withResolvers<void>();
    vi.spyOn(channel, "sendToQueue").mockImplementationOnce(() => {
      sent.resolve();
      return true;
    });
    const handled = handle(message);
    await sent.promise;
    vi.advanceTimersByTime(30_000);
    vi.useRealTimers();
    await handled;
    expect(warnings).toEqual(["ONCEWARD_RETRY_QUEUE"]);
    expect(guard.kinds()).toEqual(["released"]);
    expect((await receive()).fields).toMatchObject({ redelivered: true });
  });

  test("a message with a key that is not text is dead-lettered, and nothing is claimed", async () => {
    await using guard = await newGuard();
    const { channel, queue, dead } = await newQueue();
    const fn = vi.fn();
    await consume(guard, { channel, queue }, fn);
    channel.sendToQueue(queue, Buffer.from("{}"), { headers: { [KEY_HEADER]: 7 } });
    await deadLetter(channel, dead);
    expect(guard.kinds()).toEqual(["refused"]);
    expect(fn).not.toHaveBeenCalled();
  });

  test("a message whose retry queue was deleted is returned to its queue", async () => {
    await using guard = await newGuard();
    const { channel, queue } = await newQueue();
    const warnings = collectWarnings();
    let times = 0;
    await consume(guard, { channel, queue }, () => {
      if (++times < 2) throw new Error("the provider is down");
    });
    await channel.deleteQueue(`${queue}.retry-50`);
    send(channel, queue, "order-1", "{}");
    await eventually(() => expect(guard.kinds()).toEqual(["released", "processed"]));
    expect(warnings).toEqual(["ONCEWARD_RETRY_QUEUE"]);
  });

  test.each([
    ["performs it", "processed", "duplicate", () => {}],
    [
      "gives it up",
      "released",
      "processed",
      vi.fn().mockRejectedValueOnce(new Error("the provider is down")),
    ],
  ])(
    "a channel that closes while a consumer %s only redelivers the message",
    async (_, first, second, effect) => {
      await using guard = await newGuard();
      const { channel, queue } = await newQueue();
      const { connection, ...rest } = await connectTo(rabbitmq);
      onTestFinished(() => rest[Symbol.asyncDispose]());
      const doomed = await connection.createConfirmChannel();
      await consume(guard, { channel: doomed, queue }, async () => {
        await doomed.close();
        await effect();
      });
      send(channel, queue, "order-1", "{}");
      await eventually(() => expect(guard.kinds()).toEqual([first]));
      await consume(guard, { channel, queue }, effect);
      await eventually(() => expect(guard.kinds()).toEqual([first, second]));
    },
  );

  /**
   * Sends a message, and starts a worker that kills itself at `dieAt`; `effects` collects the worker's
   * effects.
   */
  async function startWorkers(guard: Guarded, dieAt: "before completion" | "before acknowledgement") {
    const { connection, channel, queue } = await newQueue();
    const { queue: effects } = await channel.assertQueue("", { exclusive: true });
    const derivedKeys: string[] = [];
    await channel.consume(effects, (message) => message && derivedKeys.push(message.content.toString()), {
      noAck: true,
    });
    const settings = {
      url: rabbitmq.url,
      queue,
      effects,
      address: guard.address,
      apiKey: guard.tenant.apiKey,
    };
    send(channel, queue, "order-1", "{}");
    const killed = startRabbitMqWorker({ ...settings, dieAt });
    expect(await killed.exited).toBe("SIGKILL");
    await eventually(() => expect(derivedKeys).toHaveLength(1));
    return { connection, channel, queue, derivedKeys };
  }

  test("a worker killed between completion and acknowledgement repeats no effect", async () => {
    await using guard = await newGuard();
    const { connection, channel, queue, derivedKeys } = await startWorkers(guard, "before acknowledgement");
    await consume(guard, { channel, queue }, (_, claim) => derivedKeys.push(claim.deriveKey("provider")));
    await eventually(() => expect(guard.kinds()).toEqual(["duplicate"]));
    expect(derivedKeys).toHaveLength(1);
    await expectSettled({ connection, channel, queue });
  });

  test("a worker killed before the completion repeats its effect under the same derived key", async () => {
    await using guard = await newGuard();
    const { connection, channel, queue, derivedKeys } = await startWorkers(guard, "before completion");
    await consume(guard, { channel, queue }, (_, claim) => derivedKeys.push(claim.deriveKey("provider")));
    await eventually(() => expect(guard.kinds()).toContain("postponed"));
    await guard.endLeases();
    await eventually(() => expect(guard.kinds().at(-1)).toBe("processed"));
    expect(derivedKeys).toHaveLength(2);
    expect(new Set(derivedKeys).size).toBe(1);
    await expectSettled({ connection, channel, queue });
  });
});
