import { beforeEach, expect, expectTypeOf, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { InvalidRequestError, KeyTooOldError } from "../errors/catalogue.ts";
import { InProgressError, TerminalError } from "../errors/errors.ts";
import { createTestingOnceward, type TestingOnceward } from "../testing.ts";
import type { Claim } from "./claim.ts";
import { bytesCodec } from "./codec.ts";
import { createOnceward } from "./onceward.ts";

interface Order {
  readonly id: string;
  readonly cents: number;
  readonly at: Date;
}

const ORDER: Order = { id: "order-1", cents: 100, at: new Date(0) };

let testing: TestingOnceward;

beforeEach(() => {
  testing = newTesting();
});

test("a wrapped function runs once per key, and every call gets the stored value with its type", async () => {
  const fn = vi.fn(async (order: Order) => ({ charged: order.cents, at: order.at }));
  const charge = testing.onceward
    .namespace("charges")
    .wrap(fn, { key: (order) => order.id, fingerprint: (order) => order.cents });
  const values = await Promise.all([charge(ORDER), charge(ORDER)]);
  expectTypeOf(charge).returns.resolves.toEqualTypeOf<{ charged: number; at: string }>();
  expect(values).toEqual(Array(2).fill({ charged: 100, at: "1970-01-01T00:00:00.000Z" }));
  expect(fn).toHaveBeenCalledOnce();
  await expect(charge({ ...ORDER, cents: 200 })).rejects.toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
});

test("a wrapped function's key has the time of its input", async () => {
  await using refusing = createTestingOnceward({ policy: { lateKeys: "REQUIRE_TIME" } });
  const charge = refusing.onceward
    .namespace("charges")
    .wrap((order: Order) => order.cents, { key: ({ id }) => id, keyCreatedAt: ({ at }) => at });
  await expect(charge(ORDER)).rejects.toThrow(KeyTooOldError);
  expect(await charge({ ...ORDER, at: new Date() })).toBe(100);
});

test("a wrapped function gets its input and the claim", async () => {
  const fn = (order: Order, claim: Claim) => [order.id, claim.namespace, claim.key, claim.attempt];
  const charge = testing.onceward.namespace("charges").wrap(fn, { key: ({ id }) => id });
  expect(await charge(ORDER)).toEqual(["order-1", "charges", "order-1", 1]);
});

test("a wrapped function's codec decides its type", async () => {
  const charge = testing.onceward
    .namespace("charges")
    .wrap((order: Order) => new Uint8Array([order.cents]), { key: ({ id }) => id, codec: bytesCodec });
  expectTypeOf(charge).returns.resolves.toEqualTypeOf<Uint8Array>();
  expect(await charge(ORDER)).toEqual(new Uint8Array([100]));
});

test("a call's options override its namespace's; an undefined one overrides nothing", async () => {
  const charges = testing.onceward.namespace("charges", { onInProgress: "throw" });
  await testing.onceward.api.claim({ namespace: "charges", key: "order-1", owner: "worker-1" });
  const run = (onInProgress: "wait" | undefined) =>
    charges.run({ key: "order-1", waitMs: 300, onInProgress }, () => "charged");
  await expect(run(undefined)).rejects.toThrow(InProgressError);
  expect(testing.counts.inProgress).toBe(1);
  await expect(run("wait")).rejects.toThrow(InProgressError);
  // Claimed, waited, and found it in progress each time.
  expect(testing.counts.inProgress).toBeGreaterThan(2);
});

test.each(["namespace", "client"])(
  "a %s's classifyError decides about its functions' errors",
  async (whose) => {
    const own = { classifyError: () => "terminal" as const };
    const ofClient = createOnceward({ transport: testing.transport, ...own });
    const charges =
      whose === "client" ? ofClient.namespace("charges") : testing.onceward.namespace("charges", own);
    const fn = vi.fn(() => Promise.reject(new Error("declined")));
    const charge = charges.wrap(fn, { key: (order: Order) => order.id });
    for (let delivery = 0; delivery < 2; delivery++)
      await expect(charge(ORDER)).rejects.toThrow(TerminalError);
    expect(fn).toHaveBeenCalledOnce();
  },
);

test("a wrapped call takes a signal, and refuses another value, such as the index of Array.map", async () => {
  const fn = vi.fn();
  const charge = testing.onceward.namespace("charges").wrap(fn, { key: (order: Order) => order.id });
  const signal = AbortSignal.abort(new Error("too late"));
  await expect(charge(ORDER, { signal })).rejects.toThrow("too late");
  await expect(charge(ORDER, { signal: 1 as never })).rejects.toThrow(/^signal must be/);
  expect(testing.records()).toEqual([]);
  expect(fn).not.toHaveBeenCalled();
});

test("what can't be right is refused before the first call", () => {
  const { onceward } = testing;
  expect(() => onceward.namespace("Charges!")).toThrow(InvalidRequestError);
  expect(() => onceward.namespace("charges", { leaseMs: 1 })).toThrow(/^leaseMs must be/);
  const charges = onceward.namespace("charges");
  expect(() => charges.wrap(undefined as never, { key: () => "" })).toThrow(/^fn must be a function/);
  expect(() => charges.wrap(vi.fn(), {} as never)).toThrow(/^key must be a function/);
  expect(() => charges.wrap(vi.fn(), { key: () => "", waitMs: -1 })).toThrow(/^waitMs must be/);
  const keyCreatedAt = new Date() as never;
  expect(() => charges.wrap(vi.fn(), { key: () => "", keyCreatedAt })).toThrow(/^keyCreatedAt must be/);
});

test("a wrapped call accepts an ambiguous record only with the option", async () => {
  await using held = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  await held.onceward.api.claim({ namespace: "charges", key: ORDER.id, owner: "worker-1" });
  held.clock.advance(60_000);
  const charge = held.onceward
    .namespace("charges")
    .wrap((order: Order) => order.cents, { key: (order) => order.id });
  await expect(charge(ORDER)).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  expect(await charge(ORDER, { acceptAmbiguous: true })).toBe(100);
});
