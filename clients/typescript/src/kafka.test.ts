import { describe, expect, onTestFinished, test, vi } from "vitest";
import { describeConsumerAdapter } from "../../../test/support/adapters/consumer-suite.ts";
import { newTesting } from "../../../test/support/calls/testing.ts";
import { TerminalError } from "./index.ts";
import {
  type ConsumeOptions,
  consumeOnce,
  deadLetterTo,
  type EachMessagePayload,
  eachMessageOnce,
  type KafkaOptions,
  KEY_HEADER,
  readJson,
  type StreamConsumer,
  type StreamMessage,
  withKey,
} from "./kafka.ts";
import type { TestingOptions } from "./testing.ts";

/** Tests with a real broker and the real packages are in `test/brokers/`. */

interface Sent {
  readonly key?: string | undefined;
  readonly partition?: number;
  readonly body?: string;
  readonly sentMs?: number;
}

interface TestMessage extends StreamMessage {
  readonly value: string;
}

/** Delivers messages as a consumer of `@platformatic/kafka` does, and keeps the committed offset of each partition. */
class Topic implements StreamConsumer<TestMessage> {
  closed = false;
  assignments: { topic: string; partitions: number[] }[] = [{ topic: "charges", partitions: [0, 1] }];
  readonly committed = new Map<number, bigint>();
  readonly streams: unknown[] = [];
  readonly #log: TestMessage[] = [];
  readonly #next = new Map<number, bigint>();
  readonly #committing: (() => void)[] = [];
  #wake = () => {};
  #failure: Error | undefined;

  send({ key, partition = 0, body = "{}", sentMs = Date.now() }: Sent): void {
    const offset = this.#next.get(partition) ?? 0n;
    this.#next.set(partition, offset + 1n);
    const { headers } = key === undefined ? { headers: new Map() } : withKey(key, { headers: new Map() });
    const commit = async () => {
      this.committed.set(partition, offset + 1n);
      for (const wake of this.#committing.splice(0)) wake();
    };
    const timestamp = BigInt(sentMs);
    this.#log.push({ topic: "charges", partition, offset, timestamp, headers, value: body, commit });
    this.#wake();
  }

  async untilCommitted(partition: number, offset: bigint): Promise<void> {
    while ((this.committed.get(partition) ?? 0n) < offset) {
      await new Promise<void>((resolve) => this.#committing.push(resolve));
    }
  }

  /** Ends the stream as a commit does that the broker refuses after a rebalance. */
  fail(): void {
    this.#failure = new Error("rejoin the group");
    this.#wake();
  }

  async consume(options: unknown) {
    this.streams.push(options);
    // As the package: a stream reads on from its own positions after a rebalance.
    const positions = new Map(this.committed);
    const next = () =>
      this.#log.find(
        ({ partition, offset }) =>
          this.assignments.some(({ partitions }) => partitions.includes(partition)) &&
          offset >= (positions.get(partition) ?? 0n),
      );
    let closed = false;
    const topic = this;
    return {
      async close() {
        closed = true;
        topic.#wake();
      },
      async *[Symbol.asyncIterator]() {
        while (!closed) {
          const message = next();
          if (topic.#failure !== undefined) {
            const failure = topic.#failure;
            topic.#failure = undefined;
            throw failure;
          }
          if (message === undefined) {
            await new Promise<void>((resolve) => {
              topic.#wake = resolve;
            });
          } else {
            positions.set(message.partition, message.offset + 1n);
            yield message;
          }
        }
      },
    };
  }
}

const namespace = "charges";

function start(
  topic: Topic,
  fn: (message: TestMessage) => unknown,
  more: Partial<ConsumeOptions<TestMessage>> = {},
  service?: TestingOptions,
) {
  const world = newTesting(service);
  const kinds: string[] = [];
  const options: ConsumeOptions<TestMessage> = {
    topics: ["charges"],
    namespace,
    deadLetter: "skip",
    tooOld: "skip",
    waitMs: 0,
    redeliverAfterMs: 5,
    onDelivery: ({ kind }) => kinds.push(kind),
    ...more,
  };
  const consuming = consumeOnce(world.onceward, topic, options, fn);
  onTestFinished(() => consuming.close());
  return { ...world, kinds, consuming };
}

describe("a stream of messages", () => {
  describeConsumerAdapter(test, (onceward, options, fn) => {
    const topic = new Topic();
    const settings = { ...options, topics: ["charges"], deadLetter: () => {}, waitMs: 0 };
    let retried = Promise.withResolvers<void>();
    const consuming = consumeOnce(
      onceward,
      topic,
      {
        ...settings,
        redeliverAfterMs: 20,
        onDelivery: ({ kind }) => {
          if (kind === "released" || kind === "postponed") retried.resolve();
        },
      },
      ({ value }, claim) => fn(value, claim),
    );
    let sent = 0n;
    return {
      async deliver({ key, body }) {
        retried = Promise.withResolvers<void>();
        // A message that was kept comes again automatically: the one that is sent now is after it.
        topic.send({ key, body });
        sent++;
        return await Promise.race([
          topic.untilCommitted(0, sent).then(() => "settled" as const),
          retried.promise.then(() => "kept" as const),
        ]);
      },
      close: () => consuming.close(),
    };
  });

  test("offsets are committed here, after the function, and no message is skipped", async () => {
    const topic = new Topic();
    const committed: unknown[] = [];
    start(topic, () => committed.push(topic.committed.get(0)));
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    await expect.poll(() => topic.committed.get(0)).toBe(2n);
    expect(committed).toEqual([undefined, 1n]);
    expect(topic.streams).toEqual([
      { topics: ["charges"], autocommit: false, mode: "committed", fallbackMode: "earliest" },
    ]);
  });

  test("a message that waits for another holder holds up its partition, and no other one", async () => {
    const topic = new Topic();
    const ran: string[] = [];
    const { onceward, clock } = start(topic, ({ partition, offset }) => ran.push(`${partition}/${offset}`));
    await onceward.api.claim({ namespace, key: "order-0", owner: "elsewhere" });
    topic.send({ key: "order-0" });
    topic.send({ key: "order-1" });
    topic.send({ key: "order-2", partition: 1 });
    await expect.poll(() => topic.committed.get(1)).toBe(1n);
    expect(ran).toEqual(["1/0"]);
    clock.advance(60_000);
    await expect.poll(() => topic.committed.get(0)).toBe(2n);
    expect(ran).toEqual(["1/0", "0/0", "0/1"]);
  });

  test("when messages wait up to the limit, no partition is read", async () => {
    const topic = new Topic();
    const { onceward, clock, kinds } = start(topic, () => {}, { maxMessages: 2 });
    await onceward.api.claim({ namespace, key: "order-0", owner: "elsewhere" });
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    topic.send({ key: "order-2", partition: 1 });
    await expect.poll(() => kinds.length).toBeGreaterThan(1);
    expect(topic.committed).toEqual(new Map());
    clock.advance(60_000);
    await expect.poll(() => [topic.committed.get(0), topic.committed.get(1)]).toEqual([2n, 1n]);
  });

  test("messages of a partition that a rebalance took away do not run", async () => {
    const topic = new Topic();
    const ran: bigint[] = [];
    const released = Promise.withResolvers<void>();
    start(topic, async ({ offset }) => {
      ran.push(offset);
      await released.promise;
    });
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    await expect.poll(() => ran).toEqual([0n]);
    topic.assignments = [{ topic: "charges", partitions: [1] }];
    released.resolve();
    topic.send({ key: "order-2", partition: 1 });
    await expect.poll(() => topic.committed.get(1)).toBe(1n);
    expect(ran).toEqual([0n, 0n]);
    expect(topic.committed.get(0)).toBe(1n);
  });

  test("a partition that is lost and comes back before a commit is read from its start again", async () => {
    const topic = new Topic();
    const ran: bigint[] = [];
    const { kinds } = start(topic, ({ offset }) => {
      ran.push(offset);
      if (topic.streams.length === 1) {
        topic.assignments = [];
        throw new Error("away");
      }
    });
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    // No further attempt is made at a message of another consumer's partition: it is dropped, and a new stream opened.
    await expect.poll(() => topic.streams.length).toBe(2);
    expect(kinds).toEqual(["released"]);
    topic.assignments = [{ topic: "charges", partitions: [0] }];
    topic.send({ key: "order-2" });
    await expect.poll(() => topic.committed.get(0)).toBe(3n);
    expect(ran).toEqual([0n, 0n, 1n, 2n]);
  });

  test("a stream that fails while a function runs is opened again, and the message is a duplicate", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const topic = new Topic();
    const ran: bigint[] = [];
    const { kinds } = start(topic, async ({ offset }) => {
      ran.push(offset);
      if (offset === 0n) topic.fail();
    });
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    await expect.poll(() => topic.committed.get(0)).toBe(2n);
    expect(topic.streams).toHaveLength(2);
    expect(ran).toEqual([0n, 1n]);
    expect(kinds).toContain("duplicate");
    expect(warn.mock.calls.map(([, options]) => (options as { code?: string }).code)).toEqual([
      "ONCEWARD_STREAM_FAILED",
    ]);
  });

  test("closing waits for the function that runs and its commit, and runs no further message", async () => {
    const topic = new Topic();
    const running = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const { consuming, kinds } = start(topic, async () => {
      running.resolve();
      await finish.promise;
    });
    for (const key of ["order-0", "order-1"]) topic.send({ key });
    await running.promise;
    const closed = consuming.close();
    finish.resolve();
    await closed;
    expect(kinds).toEqual(["processed"]);
    expect(topic.committed.get(0)).toBe(1n);
  });

  test("a message that could not be dead-lettered is tried again before its offset is committed", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const topic = new Topic();
    const deadLetter = vi.fn<Exclude<KafkaOptions<TestMessage>["deadLetter"], "skip">>();
    deadLetter.mockRejectedValueOnce(new Error("no leader")).mockResolvedValue(undefined);
    const { kinds } = start(
      topic,
      () => {
        throw new TerminalError("card declined");
      },
      { deadLetter },
    );
    topic.send({ key: "order-0" });
    topic.send({});
    await expect.poll(() => topic.committed.get(0)).toBe(2n);
    expect(kinds).toEqual(["failed", "duplicate", "refused"]);
    expect(deadLetter.mock.calls.map(([, error]) => error.message)).toEqual([
      "card declined",
      "card declined",
      "The message has no operation key.",
    ]);
  });
});

const TIMED: TestingOptions = { policy: { lateKeys: "REQUIRE_TIME", keyRetentionS: 60 } };

test("a key without a time has that of its message, and a late message is dead-lettered", async () => {
  const topic = new Topic();
  const deadLetter = vi.fn();
  const { kinds } = start(topic, () => {}, { deadLetter, tooOld: undefined }, TIMED);
  topic.send({ key: "order-1" });
  topic.send({ key: "order-2", sentMs: Date.now() - 120_000 });
  await topic.untilCommitted(0, 2n);
  expect(kinds).toEqual(["processed", "refused"]);
  expect(deadLetter).toHaveBeenCalledOnce();
});

test("a late message that is skipped holds up no other message of its partition", async () => {
  const topic = new Topic();
  const { kinds } = start(topic, () => {}, {}, TIMED);
  topic.send({ key: "order-1", sentMs: Date.now() - 120_000 });
  topic.send({ key: "order-2" });
  await topic.untilCommitted(0, 2n);
  expect(kinds).toEqual(["refused", "processed"]);
});

describe("eachMessage", () => {
  /** Returns a payload as `@confluentinc/kafka-javascript` makes it: header values are buffers. */
  function delivered(headers: Record<string, unknown>, offset = "42", resume: () => void = () => {}) {
    const pause = vi.fn(() => resume);
    const message = { offset, timestamp: `${Date.now()}`, headers, key: "customer-7", value: "{}" };
    return { topic: "charges", partition: 3, message, pause } satisfies EachMessagePayload;
  }

  const order = { [KEY_HEADER]: Buffer.from("order-1") };

  describeConsumerAdapter(test, (onceward, options, fn) => {
    const quiet = {
      ...options,
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      waitMs: 0,
      onDelivery: () => {},
    };
    type Payload = ReturnType<typeof delivered> & { readonly body: string };
    const eachMessage = eachMessageOnce<Payload>(onceward, quiet, ({ body }, claim) => fn(body, claim));
    return {
      deliver: ({ key, body }) => {
        const headers = key === undefined ? {} : { [KEY_HEADER]: Buffer.from(key) };
        return eachMessage({ ...delivered(headers), body }).then(
          () => "settled",
          () => "kept",
        );
      },
    };
  });

  test("the partition is paused after an error; a disconnected consumer is not resumed", async () => {
    const { onceward } = newTesting();
    const resume = vi.fn(() => {
      throw new Error("Resume can only be called while connected.");
    });
    const payload = delivered(order, "42", resume);
    const settings = {
      namespace,
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      redeliverAfterMs: 1,
      onDelivery: () => {},
    };
    const thrown = new Error("the provider is down");
    const eachMessage = eachMessageOnce(onceward, settings, () => {
      throw thrown;
    });
    await expect(eachMessage(payload)).rejects.toBe(thrown);
    expect(payload.pause).toHaveBeenCalledOnce();
    await expect.poll(() => resume.mock.calls.length).toBe(1);
  });

  test("a key without a time gets its message's; a late message goes to a topic with its reason", async () => {
    const { onceward } = newTesting(TIMED);
    const send = vi.fn();
    const kinds: string[] = [];
    const settings = { namespace, onDelivery: ({ kind }: { kind: string }) => kinds.push(kind) };
    const deadLetter = deadLetterTo({ send }, "charges.dead");
    type Payload = ReturnType<typeof delivered>;
    const eachMessage = eachMessageOnce<Payload>(onceward, { ...settings, deadLetter }, () => {});
    await eachMessage(delivered(order));
    const payload = delivered({ [KEY_HEADER]: "order-2" }, "43");
    const { offset, ...late } = { ...payload.message, timestamp: `${Date.now() - 120_000}` };
    await eachMessage({ ...payload, message: { ...late, offset } });
    expect(kinds).toEqual(["processed", "refused"]);
    const headers = { ...late.headers, "onceward-error": expect.stringContaining("under a new key") };
    expect(send).toHaveBeenCalledExactlyOnceWith({ topic: "charges.dead", messages: [{ ...late, headers }] });
  });

  test("a consumer waits for another holder that finishes soon, and pauses nothing", async () => {
    const world = newTesting();
    const held = Promise.withResolvers<void>();
    const holder = world.onceward.run({ namespace, key: "order-1" }, () => held.promise);
    const fn = vi.fn();
    const payload = delivered(order);
    const options = { namespace, deadLetter: vi.fn() };
    const waiting = eachMessageOnce(world.onceward, options, fn)(payload);
    await vi.waitUntil(() => world.waiting === 1, 30_000);
    held.resolve();
    await Promise.all([holder, waiting]);
    expect(fn).not.toHaveBeenCalled();
    expect(payload.pause).not.toHaveBeenCalled();
  });

  test.each([TypeError, RangeError, ReferenceError, SyntaxError])(
    "a %o, which would stop KafkaJS permanently, reaches it as the cause of another error",
    async (Fatal) => {
      const cause = new Fatal("a defect");
      const options = { namespace, deadLetter: vi.fn(), redeliverAfterMs: 1, onDelivery: () => {} };
      const eachMessage = eachMessageOnce(newTesting().onceward, options, () => Promise.reject(cause));
      const error = await eachMessage(delivered(order)).catch((error: unknown) => error);
      expect(error).not.toBeInstanceOf(Fatal);
      expect(error).toMatchObject({ message: `${Fatal.name}: a defect`, cause });
    },
  );

  test("a message that could not be dead-lettered is not committed", async () => {
    vi.spyOn(process, "emitWarning").mockReturnValueOnce();
    const deadLetter = () => Promise.reject(new Error("no leader"));
    const eachMessage = eachMessageOnce(newTesting().onceward, { namespace, deadLetter }, () => {});
    await expect(eachMessage(delivered({}))).rejects.toThrow("no leader");
  });

  test.each([
    ["two keys", { [KEY_HEADER]: [Buffer.from("order-1"), Buffer.from("order-2")] }],
    ["an empty key", { [KEY_HEADER]: "" }],
  ])("a message with %s is refused, and goes where dead letters go", async (_, headers) => {
    const { onceward } = newTesting();
    const fn = vi.fn();
    const deadLetter = vi.fn(async () => {});
    const settings = { namespace, deadLetter, onDelivery: () => {} };
    await eachMessageOnce(onceward, settings, fn)(delivered(headers));
    expect(deadLetter).toHaveBeenCalledOnce();
    expect(fn).not.toHaveBeenCalled();
  });
});

test.each([null, "{"])("a body of %j is not JSON, which is permanent", (body) => {
  expect(() => readJson(body)).toThrow(TerminalError);
});

test("a key is added to a Map of headers and to an object of headers", () => {
  const headers = new Map([["trace", "a"]]);
  expect(withKey("order-1", { headers }).headers).toEqual(
    new Map([
      ["trace", "a"],
      [KEY_HEADER, "order-1"],
    ]),
  );
  expect(withKey("order-1", { headers: { trace: "a" } }).headers).toEqual({
    trace: "a",
    [KEY_HEADER]: "order-1",
  });
  expect(withKey("order-1", { value: "{}" })).toEqual({ value: "{}", headers: { [KEY_HEADER]: "order-1" } });
  expect(() => withKey("", {})).toThrow("key must be 1-255 bytes");
});
