import { type Claim, type Onceward, TerminalError } from "@onceward/client";
import type { ConsumerOptions } from "@onceward/client/kafka";
import { createTestingOnceward, type TestingOnceward, type TestingPolicy } from "@onceward/client/testing";

/** The `test` of Vitest and `node:test`. */
type TestFunction = (name: string, fn: () => Promise<void>) => unknown;

/** The options that a suite gives to an adapter. */
const OPTIONS = { namespace: "charges", timeoutMs: 200 };

/** Runs a check with a service in memory, and closes what the check started. */
async function inWorld<Fn, Started extends { close?(): Promise<unknown> }>(
  check: (world: TestingOnceward, start: (fn: Fn) => Promise<Started>) => Promise<void>,
  make: (onceward: Onceward, options: typeof OPTIONS, fn: Fn) => Started | Promise<Started>,
  policy: Partial<TestingPolicy> = {},
): Promise<void> {
  await using world = createTestingOnceward({ policy });
  const started: Started[] = [];
  try {
    await check(world, async (fn) => {
      const one = await make(world.onceward, OPTIONS, fn);
      started.push(one);
      return one;
    });
  } finally {
    for (const one of started) await one.close?.();
  }
}

function counter<Value>(fn: (count: number) => Value = () => undefined as Value) {
  const counted = {
    count: 0,
    call: () => {
      counted.count++;
      return fn(counted.count);
    },
  };
  return counted;
}

function later<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

/** @throws Error that shows both values as JSON if these differ. */
function equal(actual: unknown, expected: unknown): void {
  const [is, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== wanted) throw new Error(`expected ${wanted}, got ${is}`);
}

/** A message of the suite, which the adapter's broker carries. */
export interface SuiteMessage {
  /** The operation's key; undefined: the message has none. */
  readonly key: string | undefined;
  readonly body: string;
}

/** A consumer that the adapter under test guards. */
export interface SuiteConsumer {
  /**
   * Delivers a message to the consumer. Resolves with what the broker was told: the message is `settled` (also if it was
   * dead-lettered), or stays and will be delivered again (`kept`).
   */
  deliver(message: SuiteMessage): Promise<"settled" | "kept">;
  /** Stops the consumer. Default: there is nothing to stop. */
  close?(): Promise<unknown>;
}

/**
 * Makes a consumer by the adapter under test, which gets the options, and calls `fn` with the body of each message that runs.
 */
export type SuiteConsumerFactory = (
  onceward: Onceward,
  options: Pick<ConsumerOptions<never>, "namespace" | "timeoutMs" | "maxAttempts">,
  fn: (body: string, claim: Claim) => unknown,
) => SuiteConsumer | Promise<SuiteConsumer>;

/** A UUID of version 7, made in February 2022. */
export const KEY_OF_2022 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";

const ORDER: SuiteMessage = { key: "order-1", body: '{"cents":100}' };

/** More than the two attempts that other tests make. */
const MAX_ATTEMPTS = 3;
/** A broker may deliver an earlier message of the test, too, so that a message is kept more often than it ran. */
const MAX_DELIVERIES = 100;

/**
 * Defines the tests that every adapter of consumers must pass: `describeConsumerAdapter(test, newConsumer)`, within a
 * `describe` of your own.
 */
export function describeConsumerAdapter(test: TestFunction, newConsumer: SuiteConsumerFactory): void {
  const make: SuiteConsumerFactory = (onceward, options, fn) =>
    newConsumer(onceward, { ...options, maxAttempts: MAX_ATTEMPTS }, fn);
  const fact: Fact = (name, check) =>
    test(name, () => inWorld(check, make, { onLeaseExpiry: "HOLD", lateKeys: "REFUSE" }));
  describeSettled(fact);
  describeKept(fact);
}

/** Defines one test, whose check starts consumers with a function. */
type Fact = (
  name: string,
  check: (world: TestingOnceward, start: (fn: () => unknown) => Promise<SuiteConsumer>) => Promise<void>,
) => unknown;

function describeSettled(fact: Fact): void {
  fact("a message that is delivered twice runs once, and is settled both times", async (_, start) => {
    const ran = counter();
    const consumer = await start(ran.call);
    equal([await consumer.deliver(ORDER), await consumer.deliver(ORDER)], ["settled", "settled"]);
    equal(ran.count, 1);
  });

  fact("a message whose function throws is kept, and runs again", async (_, start) => {
    const ran = counter((count) => {
      if (count === 1) throw new Error("the provider is down");
    });
    const consumer = await start(ran.call);
    equal([await consumer.deliver(ORDER), await consumer.deliver(ORDER)], ["kept", "settled"]);
    equal(ran.count, 2);
  });

  fact("a message that failed permanently is settled, and does not run again", async (_, start) => {
    const ran = counter(() => {
      throw new TerminalError("declined");
    });
    const consumer = await start(ran.call);
    equal([await consumer.deliver(ORDER), await consumer.deliver(ORDER)], ["settled", "settled"]);
    equal(ran.count, 1);
  });

  fact("a message whose function throws every time is settled after the last attempt", async (_, start) => {
    const ran = counter(() => {
      throw new Error("a defect");
    });
    const consumer = await start(ran.call);
    let told: "settled" | "kept" = "kept";
    for (let times = 0; told === "kept" && times < MAX_DELIVERIES; times++) {
      told = await consumer.deliver(ORDER);
    }
    equal([told, ran.count], ["settled", MAX_ATTEMPTS]);
  });

  fact("a message without a key never runs", async (_, start) => {
    const ran = counter();
    await (await start(ran.call)).deliver({ ...ORDER, key: undefined });
    equal(ran.count, 0);
  });

  fact("a message whose key is too old never runs, and holds up no other message", async (_, start) => {
    const ran = counter();
    const consumer = await start(ran.call);
    await consumer.deliver({ ...ORDER, key: KEY_OF_2022 });
    equal(ran.count, 0);
    equal(await consumer.deliver(ORDER), "settled");
    equal(ran.count, 1);
  });
}

function describeKept(fact: Fact): void {
  fact(
    "while the service is unreachable nothing runs, and the message is kept",
    async ({ faults }, start) => {
      const ran = counter();
      const consumer = await start(ran.call);
      faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
      const waiting = consumer.deliver(ORDER);
      const first = await Promise.race([waiting, later(4 * OPTIONS.timeoutMs, "held" as const)]);
      equal(first === "settled", false);
      equal(ran.count, 0);
      faults.clear();
      // On a busy machine, a delivery may run out of its time: before the faults end, and afterwards.
      let ended = await waiting;
      while (ended !== "settled") ended = await consumer.deliver(ORDER);
      equal(ran.count, 1);
    },
  );

  fact(
    "while another holder runs the operation, the message is kept, and does not run",
    async (world, start) => {
      const ran = counter();
      const consumer = await start(ran.call);
      await world.onceward.api.claim({ namespace: OPTIONS.namespace, key: "order-1", owner: "worker-1" });
      equal(await consumer.deliver(ORDER), "kept");
      equal(ran.count, 0);
    },
  );

  fact("while a record is ambiguous, the message is kept, and does not run", async (world, start) => {
    const ran = counter();
    const consumer = await start(ran.call);
    await world.onceward.api.claim({ namespace: OPTIONS.namespace, key: "order-1", owner: "worker-1" });
    world.clock.advance(3_600_000);
    equal(await consumer.deliver(ORDER), "kept");
    equal(ran.count, 0);
  });

  fact("a message whose effect could not be stored is kept", async ({ faults }, start) => {
    const consumer = await start(() => undefined);
    faults.failNext("complete", "INTERNAL");
    equal(await consumer.deliver(ORDER), "kept");
  });
}
