import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test, vi } from "vitest";
import { Result_Kind } from "../gen/onceward/v1/record_pb.ts";
import { InvalidRequestError, KeyTooOldError } from "../index.ts";
import { createTestingOnceward } from "./onceward.ts";
import type { TestingPolicy } from "./policy.ts";

const NOW = new Date("2030-01-01T12:00:00Z");
const HOUR_MS = 3_600_000;
/** Made at 10:00 and at 11:30 on the same day as NOW. */
const OLD_KEY = "01b8dceb-0500-7000-8000-000000000000";
const YOUNG_KEY = "01b8dd3d-6ac0-7000-8000-000000000000";

const newTesting = (lateKeys: TestingPolicy["lateKeys"]) =>
  createTestingOnceward({ now: NOW, policy: { lateKeys, keyRetentionS: 3600 } });

const ago = (ms: number) => new Date(NOW.getTime() - ms);

test("a key that is older than its retention is refused, and the function does not run", async () => {
  await using testing = newTesting("REFUSE");
  const fn = vi.fn(() => "charged");
  const late = { namespace: "charges", key: "order-1", keyCreatedAt: ago(HOUR_MS) };
  const error = await testing.onceward.run(late, fn).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(KeyTooOldError);
  expect(error).toMatchObject({ keyCreatedAt: late.keyCreatedAt, acceptedUntil: NOW });
  expect(`${error}`).toContain("Find out whether it happened; if it did not, repeat it under a new key.");
  expect(await testing.onceward.run({ ...late, keyCreatedAt: ago(HOUR_MS - 1) }, fn)).toBe("charged");
  expect(fn).toHaveBeenCalledOnce();
});

test("the time of a key that is a UUID of version 7 counts, unless another is given", async () => {
  await using testing = newTesting("REQUIRE_TIME");
  const run = (key: string, keyCreatedAt?: Date) =>
    testing.onceward.run({ namespace: "charges", key, keyCreatedAt }, () => "charged");
  await expect(run(OLD_KEY)).rejects.toThrow(KeyTooOldError);
  expect(await run(OLD_KEY, NOW)).toBe("charged");
  expect(await run(YOUNG_KEY)).toBe("charged");
});

test("a record answers however old its key is", async () => {
  await using testing = newTesting("REQUIRE_TIME");
  const run = () => testing.onceward.run({ namespace: "charges", key: YOUNG_KEY }, () => "charged");
  await run();
  testing.clock.advance(HOUR_MS + 599_999);
  expect(await run()).toBe("charged");
  expect(testing.counts).toMatchObject({ granted: 1, replayed: 1 });
});

test("a key has one life: after its record has ended, it is refused, also if its clock was ahead", async () => {
  await using testing = newTesting("REQUIRE_TIME");
  const keyCreatedAt = new Date(NOW.getTime() + 300_000);
  const run = () =>
    testing.onceward.runDetailed({ namespace: "charges", key: "order-1", keyCreatedAt }, () => "charged");
  const { expiresAt } = await run();
  testing.clock.advanceTo(expiresAt);
  await expect(run()).rejects.toThrow(KeyTooOldError);
});

test("a request can't shorten the retention of a record that has to outlive its key", async () => {
  await using testing = newTesting("REFUSE");
  const { calls } = testing.onceward;
  const short = { namespace: "charges", key: "order-1", retention: { seconds: 60n, nanos: 0 } };
  const { expiresAt, outcome } = await calls.claim(short);
  const inAnHourAndTenMinutes = timestampFromDate(ago(-HOUR_MS - 600_000));
  expect(expiresAt).toEqual(inAnHourAndTenMinutes);
  const { fencingToken = 0n } = outcome.case === "claimed" ? outcome.value : {};
  const completed = await calls.complete({ ...short, fencingToken, result: { kind: Result_Kind.SUCCESS } });
  expect(completed.expiresAt).toEqual(inAnHourAndTenMinutes);
});

test.each([
  ["is granted if only late keys are refused", "REFUSE" as const, undefined],
  ["is refused if the policy requires a time", "REQUIRE_TIME" as const, /^key_created_at is required/],
])("a key without a time %s", async (_, lateKeys, refusal) => {
  await using testing = newTesting(lateKeys);
  const run = testing.onceward.run({ namespace: "charges", key: "order-1" }, () => "charged");
  if (refusal === undefined) return expect(await run).toBe("charged");
  await expect(run).rejects.toThrow(refusal);
});

test("a time that is more than five minutes ahead is refused", async () => {
  await using testing = newTesting("REFUSE");
  const keyCreatedAt = new Date(NOW.getTime() + 300_001);
  const run = testing.onceward.run({ namespace: "charges", key: "order-1", keyCreatedAt }, () => "charged");
  await expect(run).rejects.toThrow(InvalidRequestError);
});

test("without a policy for late keys a key of any age runs", async () => {
  await using testing = newTesting("RUN");
  const run = () => testing.onceward.run({ namespace: "charges", key: OLD_KEY }, () => "charged");
  expect(await run()).toBe("charged");
  testing.clock.advance(HOUR_MS);
  expect(await run()).toBe("charged");
  expect(testing.counts.granted).toBe(2);
});

test("a refused item leaves the other items of its batch", async () => {
  await using testing = newTesting("REFUSE");
  const keyCreatedAt = timestampFromDate(ago(2 * HOUR_MS));
  const claim = (key: string) => testing.onceward.calls.claim({ namespace: "charges", key, keyCreatedAt });
  const outcomes = await Promise.allSettled([
    claim("order-1"),
    testing.onceward.calls.claim({ namespace: "charges", key: "order-2" }),
  ]);
  expect(outcomes).toMatchObject([{ reason: { reason: "KEY_TOO_OLD" } }, { status: "fulfilled" }]);
});
