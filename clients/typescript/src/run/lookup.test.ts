import { beforeEach, expect, expectTypeOf, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { TerminalError } from "../errors/errors.ts";
import type { TestingOnceward } from "../testing.ts";
import { bytesCodec } from "./codec.ts";
import type { KeyState } from "./lookup.ts";

const ORDER = { namespace: "charges", key: "order-1" };
const NOW = new Date("2030-01-01T00:00:00Z");

let testing: TestingOnceward;

beforeEach(() => {
  const policy = { resultRetentionS: 60 } as const;
  testing = newTesting({ now: NOW, policy, namespaces: { held: { onLeaseExpiry: "HOLD" } } });
});

const find = () => testing.onceward.lookup(ORDER);

test("a key that no one claimed is unknown", async () => {
  expect(await find()).toEqual({ state: "unknown" });
});

test("a key in progress names its holder and checkpoint; a lookup changes nothing", async () => {
  const { onceward } = testing;
  await onceward.run({ ...ORDER, owner: "worker-1" }, async (claim) => {
    await claim.saveCheckpoint("charged", { id: 7 });
    const checkpoint = { name: "charged", state: { id: 7 } };
    const { fencingToken } = claim;
    const holder = { owner: "worker-1", attempt: 1, fencingToken };
    expect(await find()).toMatchObject({ state: "in-progress", ...holder, checkpoint });
  });
  expect(testing.counts).toMatchObject({ granted: 1 });
});

test("a completed key has its value, its type given by the caller or the codec", async () => {
  const { onceward } = testing;
  await onceward.run(ORDER, () => ({ cents: 100 }));
  const found = await onceward.lookup<{ cents: number }>(ORDER);
  expectTypeOf(found).toEqualTypeOf<KeyState<{ cents: number }>>();
  expect(found).toMatchObject({ state: "completed", attempt: 1, completedAt: NOW, value: { cents: 100 } });
  if (found.state === "completed") expectTypeOf(found.value).toEqualTypeOf<{ cents: number }>();
  await onceward.run({ ...ORDER, key: "bytes", codec: bytesCodec }, () => new Uint8Array([1]));
  const bytes = await onceward.lookup({ ...ORDER, key: "bytes", codec: bytesCodec });
  expectTypeOf(bytes).toEqualTypeOf<KeyState<Uint8Array>>();
  expect(bytes).toMatchObject({ state: "completed", value: new Uint8Array([1]) });
});

test("a permanent failure has its error, and a value that is no longer stored the reason", async () => {
  const { onceward } = testing;
  const declined = () => {
    throw new TerminalError("declined", { code: 5 });
  };
  await expect(onceward.run(ORDER, declined)).rejects.toThrow("declined");
  expect(await find()).toMatchObject({
    state: "failed",
    error: { message: "declined", details: { code: 5 } },
  });
  await onceward.run({ ...ORDER, key: "old" }, () => "value");
  testing.clock.advance(60_000);
  const old = await onceward.lookup({ ...ORDER, key: "old" });
  expect(old).toMatchObject({
    state: "unreadable",
    error: { reason: "RESULT_EXPIRED", claim: { key: "old" } },
  });
});

test("a released key has its reason, and one whose holder died under HOLD is ambiguous", async () => {
  const { onceward } = testing;
  const fail = () => {
    throw new RangeError("secret");
  };
  await expect(onceward.run(ORDER, fail)).rejects.toThrow("secret");
  expect(await find()).toMatchObject({ state: "released", reason: "RangeError" });
  const held = { namespace: "held", key: "order-1" };
  await onceward.api.claim({ ...held, owner: "died" });
  testing.clock.advance(30_000);
  expect(await onceward.lookup(held)).toMatchObject({ state: "ambiguous", owner: "died" });
});

test("a lookup is refused for an invalid name or after closing, and ends by signal or timeout", async () => {
  const { onceward } = testing;
  const invalid = onceward.lookup({ namespace: "No", key: "k" });
  await expect(invalid).rejects.toMatchObject({ violations: [{ field: "namespace" }] });
  await expect(onceward.lookup({ ...ORDER, key: "" })).rejects.toMatchObject({
    violations: [{ field: "key" }],
  });
  await expect(onceward.lookup({ ...ORDER, signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
  testing.faults.failNext("lookup", "DATABASE_UNAVAILABLE", 2);
  expect(await find()).toEqual({ state: "unknown" });
  testing.faults.failNext("lookup", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  await expect(onceward.lookup({ ...ORDER, timeoutMs: 1 })).rejects.toMatchObject({
    reason: "DATABASE_UNAVAILABLE",
  });
  await onceward.close();
  await expect(find()).rejects.toMatchObject({ reason: "CLOSED" });
});
