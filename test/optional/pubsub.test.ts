import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Message, PubSub } from "@google-cloud/pubsub";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type MessageOptions, messageOnce, withKey } from "../../clients/typescript/src/pubsub.ts";
import { cutOff, type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { describeConsumerAdapter } from "../support/adapters/consumer-suite.ts";

/** The real package against the Pub/Sub server of Google's own tests (Go's `pubsub/pstest`). */

const run = promisify(execFile);
const SERVER = fileURLToPath(new URL("pubsub-server", import.meta.url));
const EXAMPLE = fileURLToPath(new URL("../../clients/typescript/examples/pubsub.ts", import.meta.url));
/** Go downloads the server's modules once. */
const BUILD_TIMEOUT_MS = 600_000;

const hasGo = await run("go", ["version"]).then(
  () => true,
  () => false,
);
if (!hasGo) process.stderr.write("Tests with a real Pub/Sub server are skipped: install Go (golang-go).\n");

const newGuard = useGuards();

describe.runIf(hasGo)("A subscriber of Google Pub/Sub", () => {
  let dir: string;
  let address: string;
  let client: PubSub;
  let stop: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    vi.stubEnv("METADATA_SERVER_DETECTION", "none");
    dir = await mkdtemp(join(tmpdir(), "ow-pubsub-"));
    const program = join(dir, "pubsub-server");
    await run("go", ["build", "-o", program, "."], { cwd: SERVER, timeout: BUILD_TIMEOUT_MS });
    const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
    const exited = once(child, "exit");
    stop = async () => {
      child.stdin.end();
      await exited;
    };
    [address] = await once(createInterface(child.stdout), "line");
    client = new PubSub({ projectId: "test", apiEndpoint: address, emulatorMode: true });
  }, BUILD_TIMEOUT_MS);

  afterAll(async () => {
    await client?.close();
    await stop?.();
    await rm(dir, { recursive: true, force: true });
    vi.unstubAllEnvs();
  });

  async function newTopic() {
    const [topic] = await client.createTopic(`charges-${randomUUID()}`);
    const name = `${topic.name.split("/").at(-1)}-worker`;
    await topic.createSubscription(name, {
      ackDeadlineSeconds: 10,
      enableMessageOrdering: true,
    });
    topic.setPublishOptions({ messageOrdering: true });
    const subscription = client.subscription(name, { streamingOptions: { maxStreams: 1 } });
    onTestFinished(() => subscription.close());
    return { topic, subscription };
  }

  /** Counts acknowledgements and returns, as the subscriber sends them. */
  function consume(
    { onceward, options }: Pick<Guarded, "onceward" | "options">,
    { subscription }: Awaited<ReturnType<typeof newTopic>>,
    fn: (message: Message) => unknown,
    more: Partial<MessageOptions<Message>> = {},
  ) {
    const told = { acks: 0, nacks: 0 };
    const settings = {
      ...options,
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      redeliverAfterMs: 50,
      ...more,
    };
    const handle = messageOnce(onceward, settings, fn);
    subscription.on("message", (message: Message) => {
      const { ack, nack } = message;
      message.ack = () => {
        told.acks++;
        ack.call(message);
      };
      message.nack = () => {
        told.nacks++;
        nack.call(message);
      };
      void handle(message);
    });
    return told;
  }

  test("an outage that is longer than the acknowledgement deadline returns no message", async () => {
    await using guard = await newGuard();
    const { onceward, heal } = await cutOff(guard);
    const world = await newTopic();
    const seen: (number | undefined)[] = [];
    const told = consume({ ...guard, onceward }, world, (message) => seen.push(message.deliveryAttempt));
    await world.topic.publishMessage(withKey("order-1", { json: {} }));
    const until = performance.now() + 12_000;
    await expect.poll(() => performance.now()).toBeGreaterThan(until);
    heal();
    await expect.poll(() => told.acks).toBe(1);
    expect(told.nacks).toBe(0);
    expect(seen).toHaveLength(1);
  });

  test("the example proves the same with this server", async () => {
    await using guard = await newGuard();
    const env = {
      ...process.env,
      ONCEWARD_ADDRESS: guard.address,
      ONCEWARD_API_KEY: guard.tenant.apiKey,
      PUBSUB_EMULATOR_HOST: address,
    };
    const { stdout } = await run(process.execPath, ["--conditions=@onceward/source", EXAMPLE], { env });
    expect(stdout).toContain(`Google Pub/Sub at ${address}`);
    expect(stdout).toMatch(/^proved: /m);
    expect(stdout).not.toContain("FAILED");
  });

  describeConsumerAdapter(test, async (onceward, options, fn) => {
    const world = await newTopic();
    let told = Promise.withResolvers<"settled" | "kept">();
    const settings: MessageOptions<Message> = {
      ...options,
      deadLetter: "skip",
      tooOld: "skip",
      redeliverAfterMs: 50,
      onDelivery: ({ kind }) => {
        if (kind === "released" || kind === "postponed") told.resolve("kept");
      },
    };
    const handle = messageOnce(onceward, settings, (message: Message, claim) => fn(`${message.data}`, claim));
    world.subscription.on("message", (message: Message) => {
      const { ack } = message;
      message.ack = () => {
        told.resolve("settled");
        ack.call(message);
      };
      void handle(message);
    });
    return {
      async deliver({ key, body }) {
        told = Promise.withResolvers();
        const message = { data: Buffer.from(body) };
        await world.topic.publishMessage(key === undefined ? message : withKey(key, message));
        return await told.promise;
      },
    };
  });
});
