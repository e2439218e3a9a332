import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { TerminalError } from "@onceward/client";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import {
  KEY_HEADER,
  type MessageOptions,
  messageOnce,
  withKey,
} from "../../../clients/typescript/src/nats.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { type NatsServer, startNatsServer } from "../../support/brokers/nats-server.ts";
import {
  collectWarnings,
  cutOff,
  eventually,
  type Guarded,
  newCrowd,
  newTimedGuard,
  useGuards,
} from "./fixtures.ts";

const newGuard = useGuards();

describe.runIf(inject("natsProgram") !== "")("A consumer of NATS JetStream", () => {
  let server: NatsServer;
  let connection: NatsConnection;

  beforeAll(async () => {
    server = await startNatsServer(inject("natsProgram"));
    connection = await connect({ servers: server.address });
  });

  afterAll(async () => {
    await connection?.close();
    await server?.stop();
  });

  /** Creates a stream with one consumer, and functions that send to it and see what JetStream was told. */
  async function newStream(ackWaitMs = 30_000) {
    const name = `charges-${randomUUID()}`;
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name, subjects: [name] });
    await manager.consumers.add(name, {
      durable_name: "worker",
      ack_policy: AckPolicy.Explicit,
      ack_wait: ackWaitMs * 1_000_000,
    });
    const js = jetstream(connection);
    const consumer = await js.consumers.get(name, "worker");
    return {
      name,
      consumer,
      send: (key: string, body = "{}") => js.publish(name, body, withKey(key, { headers: headers() })),
      sendPlain: () => js.publish(name, "{}"),
      /** Resolves once every message is acknowledged or terminated. */
      settled: () =>
        eventually(async () => {
          const { num_ack_pending, num_pending } = await consumer.info();
          expect({ num_ack_pending, num_pending }).toEqual({ num_ack_pending: 0, num_pending: 0 });
        }),
    };
  }

  type Stream = Awaited<ReturnType<typeof newStream>>;

  async function consume(
    { onceward, options }: Pick<Guarded, "onceward" | "options">,
    { consumer }: Stream,
    fn: Parameters<typeof messageOnce>[2],
    more: Partial<MessageOptions> = {},
  ) {
    const handle = messageOnce(
      onceward,
      { ...options, deadLetter: "skip", tooOld: "skip", redeliverAfterMs: 50, ...more },
      fn,
    );
    const messages = await consumer.consume({ callback: (message) => void handle(message) });
    onTestFinished(() => void messages.close());
    return messages;
  }

  describeConsumerAdapter(test, async (onceward, options, fn) => {
    const { consumer, send, sendPlain } = await newStream();
    const handle = messageOnce(
      onceward,
      { ...options, deadLetter: "skip", tooOld: "skip", redeliverAfterMs: 50, onDelivery: () => {} },
      (message, claim) => fn(message.string(), claim),
    );
    return {
      async deliver({ key, body }) {
        // A message that was kept may be the next one, too: it has the same key.
        await (key === undefined ? sendPlain() : send(key, body));
        const message = await consumer.next();
        if (message === null) throw new Error("no message came");
        const told = vi.spyOn(message, "nak");
        await handle(message);
        return told.mock.calls.length > 0 ? "kept" : "settled";
      },
    };
  });

  test("a key without a time has that at which the stream stored its message", async () => {
    const guard = newTimedGuard();
    const stream = await newStream();
    await consume(guard, stream, () => {});
    await stream.send("order-1");
    await stream.settled();
    expect(guard.kinds()).toEqual(["processed"]);
  });

  test("at most `concurrency` functions run at once, and those that wait keep their messages", async () => {
    await using guard = await newGuard();
    const stream = await newStream(2_000);
    const crowd = newCrowd();
    await consume(guard, stream, crowd.work, { concurrency: 2, workingIntervalMs: 100 });
    for (let order = 0; order < 5; order++) await stream.send(`order-${order}`);
    await eventually(async () => expect((await stream.consumer.info()).num_ack_pending).toBe(5));
    // Once more than ack_wait.
    const until = performance.now() + 2_100;
    await expect.poll(() => performance.now(), { timeout: 30_000 }).toBeGreaterThan(until);
    crowd.end();
    await stream.settled();
    expect(crowd.most()).toBe(2);
    expect(guard.kinds()).toEqual(Array(5).fill("processed"));
    expect((await stream.consumer.info()).num_redelivered).toBe(0);
  });

  test("JetStream is told once per interval that a message is being handled", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    await using guard = await newGuard();
    const stream = await newStream();
    await stream.send("order-1");
    const message = await stream.consumer.next();
    if (message === null) throw new Error("no message came");
    const working = vi.spyOn(message, "working");
    const settings = {
      ...guard.options,
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      workingIntervalMs: 1000,
    };
    await messageOnce(guard.onceward, settings, () => void vi.advanceTimersByTime(5000))(message);
    expect(working).toHaveBeenCalledTimes(5);
    await stream.settled();
  });

  test("while another holder runs the operation, the message comes back when the lease ends", async () => {
    await using guard = await newGuard();
    const stream = await newStream();
    await guard.onceward.calls.claim({ namespace: "charges", key: "order-1", lease: durationFromMs(1_500) });
    const deliveries: number[] = [];
    await consume(guard, stream, (message) => deliveries.push(message.info.deliveryCount));
    await stream.send("order-1");
    await stream.settled();
    expect(guard.kinds()).toEqual(["postponed", "processed"]);
    expect(deliveries).toEqual([2]);
  });

  test("an outage counts no deliveries: the message is held until the service answers", async () => {
    await using guard = await newGuard();
    const { onceward, heal } = await cutOff(guard);
    const stream = await newStream(500);
    const deliveries: number[] = [];
    await consume({ ...guard, onceward }, stream, (message) => deliveries.push(message.info.deliveryCount), {
      workingIntervalMs: 100,
      redeliverAfterMs: 300,
    });
    await stream.send("order-1");
    // By then the outage is longer than ack_wait.
    await eventually(() => expect(guard.kinds().length).toBeGreaterThan(3));
    heal();
    await stream.settled();
    expect(guard.kinds().at(-1)).toBe("processed");
    expect(deliveries).toEqual([1]);
  });

  test("messages that no retry can help are dead-lettered and terminated, and nothing runs twice", async () => {
    await using guard = await newGuard();
    const stream = await newStream();
    const terminated: unknown[] = [];
    connection.subscribe(`$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.${stream.name}.worker`, {
      callback: (_, message) => void terminated.push(message.json()),
    });
    const fn = vi.fn(() => {
      throw new TerminalError("card declined");
    });
    const deadLetter = vi.fn<Exclude<MessageOptions["deadLetter"], string>>().mockResolvedValue(undefined);
    const warnings = collectWarnings();
    deadLetter.mockRejectedValueOnce(new Error("no stream"));
    await consume(guard, stream, fn, { deadLetter });
    await stream.send("order-1");
    await stream.settled();
    await stream.sendPlain();
    await stream.settled();
    expect(guard.kinds()).toEqual(["failed", "duplicate", "refused"]);
    expect(deadLetter.mock.calls.map(([, error]) => error.message)).toEqual([
      "card declined",
      "card declined",
      "The message has no operation key.",
    ]);
    expect(warnings).toEqual(["ONCEWARD_DEAD_LETTER"]);
    expect(fn).toHaveBeenCalledOnce();
    await eventually(() => expect(terminated).toHaveLength(2));
  });

  test("a message with two keys is refused", async () => {
    await using guard = await newGuard();
    const stream = await newStream();
    const twice = headers();
    for (const key of ["order-1", "order-2"]) twice.append(KEY_HEADER, key);
    const messages = await consume(guard, stream, () => {});
    await jetstream(connection).publish(stream.name, "{}", { headers: twice });
    await stream.settled();
    await messages.close();
    expect(guard.kinds()).toEqual(["refused"]);
  });

  test("a connection that closes while a message is handled only redelivers the message", async () => {
    await using guard = await newGuard();
    const stream = await newStream(500);
    const doomed = await connect({ servers: server.address });
    const handle = messageOnce(guard.onceward, { ...guard.options, deadLetter: "skip", tooOld: "skip" }, () =>
      doomed.close(),
    );
    await stream.send("order-1");
    const consumer = await jetstream(doomed).consumers.get(stream.name, "worker");
    const message = await consumer.next();
    if (message === null) throw new Error("no message came");
    await handle(message);
    expect(guard.kinds()).toEqual(["processed"]);
    await consume(guard, stream, () => {});
    await stream.settled();
    expect(guard.kinds()).toEqual(["processed", "duplicate"]);
  });
});

test("withKey copies the headers of a publication: one set of headers serves several messages", () => {
  const shared = headers();
  shared.append("Trace", "a");
  shared.append("Trace", "b");
  const [first, second] = [withKey("order-1", { headers: shared }), withKey("order-2", { headers: shared })];
  expect(first.headers.get(KEY_HEADER)).toBe("order-1");
  expect(second.headers.get(KEY_HEADER)).toBe("order-2");
  expect(first.headers.values("Trace")).toEqual(["a", "b"]);
  expect(shared.has(KEY_HEADER)).toBe(false);
});
