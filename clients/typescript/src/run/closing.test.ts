import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { granted } from "../../../../test/support/calls/records.ts";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import type { TestingOnceward } from "../testing.ts";
import type { OncewardEvent } from "./events.ts";
import { createOnceward, type Onceward } from "./onceward.ts";

const operation = { namespace: "charges", key: "order-1" };
/** Longer than a test may take. */
const TOO_LONG_MS = 600_000;

/** Another client of the same service. */
function newOnceward(transport: Transport, onEvent?: (event: OncewardEvent) => void): Onceward {
  const onceward = createOnceward({ transport, owner: "worker-2", onEvent });
  onTestFinished(() => onceward.close({ timeoutMs: 0 }));
  return onceward;
}

test("a run that retries during an outage ends as soon as its client closes", async () => {
  const testing = newTesting();
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const onceward = newOnceward(testing.transport);
  const fn = vi.fn();
  const options = { ...operation, timeoutMs: TOO_LONG_MS, onUnavailable: "proceed" } as const;
  const run = expect(onceward.run(options, fn)).rejects.toMatchObject({ reason: "CLOSED" });
  // Its call is under way, and what fails is tried again.
  await new Promise((resolve) => setImmediate(resolve));
  await onceward.close();
  await run;
  expect(fn).not.toHaveBeenCalled();
});

test("a run whose claim has no answer ends when its client closes, which does not wait", async () => {
  const testing = newTesting();
  const asked = vi.fn();
  const onceward = newOnceward({
    stream: testing.transport.stream,
    unary: () => {
      asked();
      return new Promise(() => {});
    },
  });
  const fn = vi.fn();
  const run = expect(onceward.run(operation, fn)).rejects.toMatchObject({ reason: "CLOSED" });
  await vi.waitUntil(() => asked.mock.calls.length === 1, 30_000);
  await onceward.close({ timeoutMs: 0 });
  await run;
  expect(fn).not.toHaveBeenCalled();
});

test("a claim that is granted just when its client closes is released", async () => {
  const testing = newTesting();
  const held = granted(await testing.onceward.api.claim({ ...operation, owner: "worker-1" }));
  const answered = vi.fn();
  /** The answer to a call that waits never comes. */
  const transport: Transport = {
    stream: testing.transport.stream,
    async unary(method, signal, ...call) {
      const answer = await testing.transport.unary(method, signal, ...call);
      if (signal === undefined) return answer;
      answered();
      return await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new ConnectError("aborted", Code.Canceled)));
      });
    },
  };
  const onceward = newOnceward(transport);
  const waiter = onceward.run({ ...operation, waitMs: TOO_LONG_MS }, vi.fn());
  const closed = expect(waiter).rejects.toMatchObject({ reason: "CLOSED" });
  await vi.waitUntil(() => testing.waiting === 1, 30_000);
  await testing.onceward.calls.release({ ...operation, fencingToken: held.fencingToken });
  await vi.waitUntil(() => answered.mock.calls.length === 1, 30_000);
  await onceward.close();
  await closed;
  expect(await testing.onceward.run({ ...operation, waitMs: 0 }, () => "charged")).toBe("charged");
});

test("a client closes after its timeout although a function runs, whose lease is then lost", async () => {
  const { onceward } = newTesting();
  const held = Promise.withResolvers<string>();
  const signals: AbortSignal[] = [];
  const running = onceward.run(operation, (claim) => {
    signals.push(claim.signal);
    return held.promise;
  });
  await vi.waitUntil(() => signals.length === 1, 30_000);
  // The first one waits for the function.
  const patient = onceward.close();
  await onceward.close({ timeoutMs: 20 });
  expect(signals[0]?.aborted).toBe(true);
  expect(signals[0]?.reason).toMatchObject({ reason: "CLOSED" });
  held.resolve("charged");
  await expect(running).rejects.toMatchObject({
    name: "CompletionError",
    reason: "CLOSED",
    stored: false,
    effect: { status: "fulfilled", value: "charged" },
  });
  await patient;
});

/** Runs a function until its claim's signal aborts, and closes its client meanwhile, with a limit. */
async function runUntilClosed(testing: TestingOnceward, fn: () => unknown) {
  const onceward = newOnceward(testing.transport);
  const begun = Promise.withResolvers<void>();
  const running = onceward.run(operation, async (claim) => {
    begun.resolve();
    await new Promise((resolve) => claim.signal.addEventListener("abort", resolve));
    return await fn();
  });
  await begun.promise;
  const [run] = await Promise.allSettled([running, onceward.close({ timeoutMs: 0 })]);
  return run;
}

test("a function has a second to end when its client's time is up, and its outcome is stored", async () => {
  const testing = newTesting();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let hasEnded = false;
  const closed = runUntilClosed(testing, async () => {
    await new Promise((resolve) => setTimeout(resolve, 900));
    return "charged";
  }).finally(() => {
    hasEnded = true;
  });
  while (!hasEnded) await vi.advanceTimersByTimeAsync(1);
  expect(await closed).toEqual({ status: "fulfilled", value: "charged" });
});

test("a raw call that has no answer when its client closes ends, and none is made afterwards", async () => {
  const testing = newTesting();
  const onceward = newOnceward({ stream: testing.transport.stream, unary: () => new Promise(() => {}) });
  const call = expect(onceward.api.lookup(operation)).rejects.toMatchObject({ reason: "CLOSED" });
  await onceward.close();
  await call;
  await expect(onceward.api.lookup(operation)).rejects.toMatchObject({ reason: "CLOSED" });
});

test.each([-1, 0.5, Number.NaN, 2 ** 31])(
  "a timeout of %s for closing is refused by name",
  async (timeoutMs) => {
    const { onceward } = newTesting();
    await expect(onceward.close({ timeoutMs })).rejects.toThrow(/^timeoutMs must be/);
  },
);

test("a signal ends the wait for another holder with its own reason, and nothing ran", async () => {
  const testing = newTesting();
  const onEvent = vi.fn();
  await testing.onceward.api.claim({ ...operation, owner: "worker-1" });
  const leaving = new AbortController();
  const fn = vi.fn();
  const options = { ...operation, waitMs: TOO_LONG_MS, signal: leaving.signal };
  const ended = expect(newOnceward(testing.transport, onEvent).run(options, fn)).rejects.toBe("left");
  await vi.waitUntil(() => testing.waiting === 1, 30_000);
  leaving.abort("left");
  await ended;
  expect(fn).not.toHaveBeenCalled();
  expect(onEvent).toHaveBeenLastCalledWith({ namespace: "charges", type: "not-run", reason: "ABORTED" });
  await vi.waitUntil(() => testing.waiting === 0, 30_000);
});
