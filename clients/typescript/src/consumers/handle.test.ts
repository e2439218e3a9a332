import { expect, onTestFinished, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { type Claim, createOnceward, happened, InProgressError, OncewardError } from "../index.ts";
import type { Runner } from "../run/client.ts";
import { createTestingOnceward } from "../testing.ts";
import { createHandler } from "./handle.ts";

test("the client's `onError` holds on the last attempt, too", async () => {
  const { transport } = createTestingOnceward();
  const onceward = createOnceward({ transport, onError: "unknown" });
  onTestFinished(() => onceward.close());
  const options = { namespace: "charges", maxAttempts: 1, onDelivery: () => {} };
  const handle = createHandler(onceward, options, String, () => Promise.reject(new Error("down")));
  expect(await handle("order-1")).toMatchObject({ kind: "released" });
  expect(await handle("order-1")).toMatchObject({ kind: "postponed", error: expect.any(InProgressError) });
});

test.each([
  ["is waited for if it is longer than the consumer's", 60_000, 60_000],
  ["is cut to a day, which a timer can wait", 2 ** 40, 86_400_000],
])("a delay of the service %s", async (_, retryDelayMs, delayMs) => {
  const unavailable = new OncewardError("DATABASE_UNAVAILABLE", "away", { retryDelayMs });
  const onceward: Runner = {
    run: () => Promise.reject(unavailable),
    runDetailed: () => Promise.reject(unavailable),
  };
  const options = { namespace: "charges", onDelivery: () => {} };
  const handle = createHandler(
    onceward,
    options,
    (message: string) => message,
    () => {},
  );
  expect(await handle("order-1")).toMatchObject({ kind: "postponed", error: unavailable, delayMs });
});

test("a message whose effect resolve found is a duplicate with its value, and does not run again", async () => {
  const { onceward, clock } = newTesting({ policy: { onLeaseExpiry: "HOLD" } });
  await onceward.api.claim({ namespace: "charges", key: "order-1", owner: "dying" });
  clock.advance(60_000);
  const fn = vi.fn();
  const resolve = (_: Claim, message: string) => happened(`charge of ${message}`);
  const handle = createHandler<string, unknown>(onceward, { namespace: "charges", resolve }, String, fn);
  for (const _ of ["first", "repeat"])
    expect(await handle("order-1")).toMatchObject({ kind: "duplicate", value: "charge of order-1" });
  expect(fn).not.toHaveBeenCalled();
});

test("a repeat of an effect whose value was not stored is a duplicate", async () => {
  const { onceward } = newTesting();
  const options = { namespace: "charges", onDelivery: () => {} };
  const handle = createHandler<string, unknown>(onceward, options, String, () => 1n);
  expect([await handle("order-1"), await handle("order-1")]).toMatchObject([
    { kind: "processed", value: 1n },
    { kind: "duplicate", value: undefined },
  ]);
});
