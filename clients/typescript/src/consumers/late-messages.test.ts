import { expect, onTestFinished, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { KeyTooOldError } from "../errors/catalogue.ts";
import { OncewardError } from "../errors/errors.ts";
import type { TestingPolicy } from "../testing/policy.ts";
import type { TestingOnceward } from "../testing.ts";
import { createConclude, type DeadLetterOptions } from "./dead-letter.ts";
import type { Delivery } from "./delivery.ts";
import { createHandler } from "./handle.ts";
import { withMessageTime } from "./message-time.ts";
import type { ConsumerOptions } from "./options.ts";

interface Message {
  readonly key: string;
  readonly sentMs: number;
}

const DAY_MS = 86_400_000;

function withLateKeys(lateKeys: TestingPolicy["lateKeys"] = "REQUIRE_TIME"): TestingOnceward {
  return newTesting({ policy: { lateKeys, keyRetentionS: DAY_MS / 1000 } });
}

/** Handles one message as an adapter does whose messages have times. */
function deliver(testing: TestingOnceward, message: Message, own: Partial<ConsumerOptions<Message>> = {}) {
  const options = { namespace: "charges", onDelivery: () => {}, ...own };
  const fn = vi.fn();
  const withTime = withMessageTime(options, ({ sentMs }: Message) => sentMs);
  return createHandler(testing.onceward, withTime, ({ key }: Message) => key, fn)(message);
}

test("a message whose operation was done is a duplicate, however long ago it was sent", async () => {
  const testing = withLateKeys();
  const message = { key: "order-1", sentMs: Date.now() - 0.9 * DAY_MS };
  expect(await deliver(testing, message)).toMatchObject({ kind: "processed" });
  testing.clock.advance(0.9 * DAY_MS);
  expect(await deliver(testing, message)).toMatchObject({ kind: "duplicate" });
});

test("the time in a key counts before that of its message", async () => {
  const madeIn2022 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  expect(await deliver(withLateKeys(), { key: madeIn2022, sentMs: Date.now() })).toMatchObject({
    kind: "refused",
    error: { reason: "KEY_TOO_OLD", keyCreatedAt: new Date("2022-02-22T19:22:22Z") },
  });
});

test("the consumer's own function counts before the message's time", async () => {
  const message = { key: "order-1", sentMs: Date.now() };
  const keyCreatedAt = () => new Date(0);
  expect(await deliver(withLateKeys(), message, { keyCreatedAt })).toMatchObject({ kind: "refused" });
});

test.each([
  ["not there", Number.NaN],
  ["-1, as Kafka's is without one", -1],
  ["in the future, as one in the wrong unit", Date.now() * 1000],
])("a message whose time is %s has none", async (_, sentMs) => {
  const message = { key: "order-1", sentMs };
  expect(await deliver(withLateKeys("REFUSE"), message)).toMatchObject({ kind: "processed" });
  expect(await deliver(withLateKeys("REQUIRE_TIME"), message)).toMatchObject({
    kind: "refused",
    error: { violations: [{ field: "key_created_at" }] },
  });
});

test.each([
  ["throws", () => new Date(Number.NaN).toISOString() as never],
  ["returns an invalid Date", () => new Date(Number.NaN)],
])("a message is refused if keyCreatedAt %s", async (_, keyCreatedAt) => {
  const message = { key: "order-1", sentMs: Date.now() };
  expect(await deliver(withLateKeys(), message, { keyCreatedAt })).toMatchObject({
    kind: "refused",
    error: { violations: [{ field: "keyCreatedAt" }] },
  });
});

const tooOld: Delivery = {
  kind: "refused",
  key: "order-1",
  error: new KeyTooOldError("The key is too old."),
};

test("a message whose key is too old goes to the dead letters, with the reason", async () => {
  const deadLetter = vi.fn();
  const conclude = createConclude({ namespace: "charges", deadLetter }, ["skip"]);
  expect(await conclude("message", tooOld)).toEqual({ kind: "discard" });
  expect(deadLetter).toHaveBeenCalledExactlyOnceWith("message", tooOld.error);
});

test("a message whose dead-lettering takes longer than 60 s is tried again", async () => {
  const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => {
    vi.useRealTimers();
    warnings.mockRestore();
  });
  const conclude = createConclude({ namespace: "charges", deadLetter: () => new Promise(() => {}) }, [
    "skip",
  ]);
  const concluded = conclude("message", tooOld);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await concluded).toMatchObject({ kind: "retry", error: { message: "it takes longer than 60 s" } });
  expect(warnings).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});

test("a message whose key is too old has its own destination, and holds up no other message", async () => {
  const tooOldTo = vi.fn();
  const failed: Delivery = { ...tooOld, error: new OncewardError("FINGERPRINT_MISMATCH", "another request") };
  const names = ["skip", "broker"] as const;
  const concludeWith = (options: DeadLetterOptions<string, "skip" | "broker">) =>
    createConclude<string>({ namespace: "charges", ...options }, names);
  const conclude = concludeWith({ deadLetter: "skip", tooOld: tooOldTo });
  expect(await conclude("message", failed)).toEqual({ kind: "discard" });
  expect(tooOldTo).not.toHaveBeenCalled();
  expect(await conclude("message", tooOld)).toEqual({ kind: "discard" });
  expect(tooOldTo).toHaveBeenCalledExactlyOnceWith("message", tooOld.error);
  const others = { deadLetter: vi.fn(), tooOld: "broker" } as const;
  expect(await concludeWith(others)("message", tooOld)).toEqual({ kind: "reject" });
  expect(others.deadLetter).not.toHaveBeenCalled();
  const skips = { deadLetter: "skip", tooOld: "skip" } as const;
  expect(await concludeWith(skips)("message", tooOld)).toEqual({ kind: "discard" });
});

test("a consumer that skips messages has to say what becomes of those that are too old", () => {
  const conclude = () => createConclude({ namespace: "charges", deadLetter: "skip" }, ["skip"]);
  expect(conclude).toThrow(/^tooOld must be set with deadLetter "skip"/);
});
