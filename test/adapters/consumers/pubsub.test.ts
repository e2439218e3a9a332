import { type Message, PubSub, protos, type Subscription } from "@google-cloud/pubsub";
import { Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition } from "@grpc/grpc-js";
import type { TestingOnceward } from "@onceward/client/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type MessageOptions, messageOnce, withKey } from "../../../clients/typescript/src/pubsub.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { newTesting } from "../../support/calls/testing.ts";
import { newCrowd, newTimedGuard } from "./fixtures.ts";

const { google } = protos;
const v1 = google.pubsub.v1;
type Pull = ServerDuplexStream<unknown, protos.google.pubsub.v1.IStreamingPullResponse>;

interface Codec {
  encode(message: never): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

interface Published {
  readonly attributes: Record<string, string>;
  readonly orderingKey: string;
  readonly publishTime: { readonly seconds: number };
}

function method(name: string, request: Codec, response: Codec, streams: boolean) {
  const serialize = (codec: Codec) => (message: unknown) =>
    Buffer.from(codec.encode(message as never).finish());
  return {
    path: `/google.pubsub.v1.Subscriber/${name}`,
    requestStream: streams,
    responseStream: streams,
    requestSerialize: serialize(request),
    requestDeserialize: (bytes: Buffer) => request.decode(bytes),
    responseSerialize: serialize(response),
    responseDeserialize: (bytes: Buffer) => response.decode(bytes),
  };
}

const SUBSCRIBER: ServiceDefinition = {
  streamingPull: method("StreamingPull", v1.StreamingPullRequest, v1.StreamingPullResponse, true),
  acknowledge: method("Acknowledge", v1.AcknowledgeRequest, google.protobuf.Empty, false),
  modifyAckDeadline: method("ModifyAckDeadline", v1.ModifyAckDeadlineRequest, google.protobuf.Empty, false),
};

/**
 * Answers the three RPCs that a subscriber of Google Pub/Sub uses, over gRPC: a subscription that delivers a message again
 * once its deadline is set to 0. It is not an emulator: deadlines don't pass automatically.
 */
class PubSubEndpoint {
  /** Ids of the acknowledged messages. */
  readonly acked: string[] = [];
  /** Ids of the messages that were returned. */
  readonly nacked: string[] = [];
  readonly #server = new Server();
  readonly #messages = new Map<string, Published>();
  #pull: Pull | undefined;
  #client: PubSub | undefined;

  async start(): Promise<Subscription> {
    type Reply = (error: null, message: object) => void;
    this.#server.addService(SUBSCRIBER, {
      streamingPull: (call: Pull) => {
        this.#pull = call;
        call.on("data", () => {});
        call.on("end", () => call.end());
        for (const id of this.#messages.keys()) this.#deliver(id);
      },
      acknowledge: ({ request }: { request: { ackIds: string[] } }, reply: Reply) => {
        for (const id of request.ackIds) this.#messages.delete(id);
        this.acked.push(...request.ackIds);
        reply(null, {});
      },
      modifyAckDeadline: (
        { request }: { request: { ackIds: string[]; ackDeadlineSeconds: number } },
        reply: Reply,
      ) => {
        reply(null, {});
        if (request.ackDeadlineSeconds > 0) return;
        this.nacked.push(...request.ackIds);
        for (const id of request.ackIds) this.#deliver(id);
      },
    });
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    this.#client = new PubSub({ projectId: "test", apiEndpoint: `127.0.0.1:${port}`, emulatorMode: true });
    return this.#client.subscription("charges", { streamingOptions: { maxStreams: 1 } });
  }

  publish(id: string, attributes: Record<string, string>, orderingKey = "", publishedMs = Date.now()): void {
    const publishTime = { seconds: Math.floor(publishedMs / 1000) };
    this.#messages.set(id, { attributes, orderingKey, publishTime });
    this.#deliver(id);
  }

  async stop(): Promise<void> {
    await this.#client?.close();
    this.#server.forceShutdown();
  }

  #deliver(id: string): void {
    const published = this.#messages.get(id);
    if (published === undefined) return;
    const message = { messageId: id, ...published, data: Buffer.from("{}") };
    this.#pull?.write({ receivedMessages: [{ ackId: id, message }] });
  }
}

/** The real package, against a server of the RPCs that it uses. */

const PATIENCE = { timeout: 30_000 };

let endpoint: PubSubEndpoint;
let subscription: Subscription;

beforeEach(async () => {
  // The package asks the network whether it runs on Google's machines.
  vi.stubEnv("METADATA_SERVER_DETECTION", "none");
  endpoint = new PubSubEndpoint();
  subscription = await endpoint.start();
});

afterEach(async () => {
  await subscription.close();
  await endpoint.stop();
  vi.unstubAllEnvs();
});

const attributesOf = (key: string | undefined) => (key === undefined ? {} : withKey(key, {}).attributes);
const quiet = {
  namespace: "charges",
  deadLetter: "skip" as const,
  tooOld: "skip" as const,
  redeliverAfterMs: 10,
  onDelivery: () => {},
};

function consume(
  { onceward }: Pick<TestingOnceward, "onceward">,
  options: Partial<MessageOptions<Message>>,
  fn: (message: Message) => unknown,
): void {
  const handle = messageOnce(onceward, { ...quiet, ...options }, fn);
  subscription.on("message", (message: Message) => void handle(message));
}

describeConsumerAdapter(test, (onceward, options, fn) => {
  let kept = Promise.withResolvers<void>();
  const onDelivery: MessageOptions<Message>["onDelivery"] = ({ kind }) => {
    if (kind === "released" || kind === "postponed") kept.resolve();
  };
  const settings = { ...quiet, ...options, deadLetter: () => {}, onDelivery };
  const handle = messageOnce(onceward, settings, (message: Message, claim) =>
    fn(message.data.toString(), claim),
  );
  subscription.on("message", (message: Message) => void handle(message));
  let sent = 0;
  return {
    async deliver({ key }) {
      const id = `${++sent}`;
      kept = Promise.withResolvers<void>();
      endpoint.publish(id, attributesOf(key));
      const settled = vi.waitUntil(() => endpoint.acked.includes(id), { timeout: 5_000, interval: 5 });
      const outcome = Promise.race([
        settled.then(() => "settled" as const),
        kept.promise.then(() => "kept" as const),
      ]);
      settled.catch(() => {});
      return await outcome;
    },
  };
});

test("a key without a time has that at which its message was published", async () => {
  const guard = newTimedGuard();
  const deadLetter = vi.fn();
  consume(guard, { ...guard.options, deadLetter, tooOld: undefined }, () => {});
  endpoint.publish("1", attributesOf("order-1"));
  await expect.poll(() => endpoint.acked).toEqual(["1"]);
  endpoint.publish("2", attributesOf("order-2"), "", Date.now() - 120_000);
  await expect.poll(() => endpoint.acked).toEqual(["1", "2"]);
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  expect(deadLetter).toHaveBeenCalledOnce();
});

/** Publishes a message, and lets the service be away until its faults are cleared. */
async function publishInOutage() {
  const world = newTesting();
  world.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const onDelivery = vi.fn();
  consume(world, { timeoutMs: 50, onDelivery }, () => {});
  endpoint.publish("1", attributesOf("order-1"));
  await expect.poll(() => onDelivery.mock.calls.length).toBeGreaterThan(2);
  return world;
}

test("an outage returns no message: it is acknowledged when the service answers", async () => {
  const world = await publishInOutage();
  world.faults.clear();
  await expect.poll(() => endpoint.acked).toEqual(["1"]);
  expect(endpoint.nacked).toEqual([]);
});

test("messages of one ordering key run in order; those after a returned one are returned", async () => {
  const ran: string[] = [];
  const other = Promise.withResolvers<void>();
  consume(newTesting(), {}, async ({ id }) => {
    ran.push(id);
    if (id === "other") return other.resolve();
    await other.promise;
    if (ran.filter((name) => name === "1").length === 1) throw new Error("away");
  });
  for (const id of ["1", "2", "3"]) endpoint.publish(id, attributesOf(`order-${id}`), "customer-1");
  endpoint.publish("other", attributesOf("order-other"), "customer-2");
  await expect.poll(() => endpoint.acked).toEqual(["other", "1", "2", "3"]);
  expect(ran).toEqual(["1", "other", "1", "2", "3"]);
  expect(endpoint.nacked).toEqual(["1", "2", "3"]);
});

test("at most `concurrency` functions run at once", async () => {
  const world = newTesting();
  const crowd = newCrowd();
  const handle = messageOnce(world.onceward, { ...quiet, concurrency: 2 }, crowd.work);
  const delivered: string[] = [];
  subscription.on("message", (message: Message) => {
    delivered.push(message.id);
    void handle(message);
  });
  const ids = ["1", "2", "3", "4", "5"];
  for (const id of ids) endpoint.publish(id, attributesOf(`order-${id}`));
  await expect.poll(() => delivered, PATIENCE).toEqual(ids);
  await world.onceward.run({ namespace: "charges", key: "another" }, () => {});
  crowd.end();
  await expect.poll(() => endpoint.acked, PATIENCE).toEqual(ids);
  expect(crowd.most()).toBe(2);
  expect(() => messageOnce(world.onceward, { ...quiet, concurrency: 0 }, crowd.work)).toThrow(
    "concurrency must be a whole number, 1-1000",
  );
});

test("closing the client returns the messages that wait for the service", async () => {
  const world = await publishInOutage();
  expect([endpoint.nacked, endpoint.acked]).toEqual([[], []]);
  await world.onceward.close();
  await expect.poll(() => endpoint.nacked).toContain("1");
  expect(endpoint.acked).toEqual([]);
});
