import { TerminalError } from "@onceward/client";
import { expect, test, vi } from "vitest";
import { createHandler } from "../../../clients/typescript/src/consumers/handle.ts";
import type { ConsumerOptions } from "../../../clients/typescript/src/consumers/options.ts";
import type { Claim } from "../../../clients/typescript/src/run/claim.ts";
import { NESTED_FAILURES } from "../../support/calls/nested-runs.ts";
import { collectWarnings, type Guarded, useGuards } from "./fixtures.ts";

const newGuard = useGuards();

/** Creates a consumer whose messages are their keys. */
function handlerOf<Value>(
  { onceward, options }: Guarded,
  fn: (message: string, claim: Claim) => Value | Promise<Value>,
  more: Partial<ConsumerOptions<string>> = {},
) {
  return createHandler(onceward, { ...options, ...more }, (message: string) => message, fn);
}

test("an error that the consumer classifies as terminal is stored, and not delivered again", async () => {
  await using guard = await newGuard();
  const fn = vi.fn(() => {
    throw new RangeError("no such currency");
  });
  const handle = handlerOf(guard, fn, {
    classifyError: (error) => (error instanceof RangeError ? "terminal" : "release"),
  });
  expect(await handle("order-1")).toMatchObject({ kind: "failed", error: { message: "no such currency" } });
  expect(await handle("order-1")).toMatchObject({
    kind: "duplicate",
    error: { message: "no such currency" },
  });
  expect(fn).toHaveBeenCalledOnce();
});

test.each(NESTED_FAILURES)(
  "a nested run $name, which throws its $error, releases the message's claim",
  async ({ error, fail }) => {
    await using guard = await newGuard();
    const warnings = collectWarnings();
    const fn = vi.fn<(message: string) => Promise<unknown>>(async () => "charged");
    fn.mockImplementationOnce(() => fail(guard.onceward));
    const handle = handlerOf(guard, fn, { onDelivery: undefined });
    expect(await handle("order-1")).toMatchObject({ kind: "released", error: { name: error } });
    expect(warnings).toEqual(["ONCEWARD_NOT_PROCESSED"]);
    expect(await handle("order-1")).toMatchObject({ kind: "processed", attempt: 2, value: "charged" });
  },
);

test("a nested run that failed permanently fails the message permanently", async () => {
  await using guard = await newGuard();
  const fn = vi.fn(() =>
    guard.onceward.run({ namespace: "nested", key: "charge-1" }, () => {
      throw new TerminalError("card declined");
    }),
  );
  const handle = handlerOf(guard, fn);
  expect(await handle("order-1")).toMatchObject({ kind: "failed", error: { message: "card declined" } });
  expect(await handle("order-1")).toMatchObject({ kind: "duplicate", error: { message: "card declined" } });
  expect(fn).toHaveBeenCalledOnce();
});

test.each<[string, string, Partial<ConsumerOptions<string>>]>([
  ["a key over the limit", "refused", { key: () => "x".repeat(256) }],
  ["a fingerprint that can't be hashed", "refused", { fingerprint: () => new Map() }],
  ["a lease over the policy's limit", "postponed", { leaseMs: 3_600_000 }],
])("%s: the message is %s, and nothing runs", async (_, kind, more) => {
  await using guard = await newGuard();
  const fn = vi.fn();
  expect(await handlerOf(guard, fn, more)("order-1")).toMatchObject({ kind });
  expect(fn).not.toHaveBeenCalled();
});

test.each([
  ["key", undefined],
  ["fingerprint", "order-1"],
])("an error of the option %s refuses the message, and names the option", async (option, key) => {
  await using guard = await newGuard();
  const fail = () => {
    throw new TypeError("it has no field");
  };
  expect(await handlerOf(guard, () => {}, { [option]: fail })("order-1")).toMatchObject({
    kind: "refused",
    key,
    error: {
      message: `${option} of the message can't be read: it has no field`,
      violations: [{ field: option }],
    },
  });
});

test("a function that was interrupted on its last attempt has not failed", async () => {
  await using guard = await newGuard();
  const stopping = new AbortController();
  const handle = handlerOf(
    guard,
    (_, claim) => {
      stopping.abort(new Error("the process ends"));
      claim.signal.throwIfAborted();
    },
    { maxAttempts: 1 },
  );
  expect(await handle("order-1", { signal: stopping.signal })).toMatchObject({ kind: "released" });
});

test.each([
  [
    "throws",
    () => {
      throw new Error("the counter is down");
    },
  ],
  ["rejects", () => Promise.reject(new Error("the counter is down"))],
])("a hook that %s becomes one warning, and changes no outcome", async (_, onDelivery) => {
  await using guard = await newGuard();
  const warnings = collectWarnings();
  const handle = handlerOf(guard, () => "charged", { onDelivery });
  for (const kind of ["processed", "duplicate"]) {
    expect(await handle("order-1")).toMatchObject({ kind, value: "charged" });
  }
  expect(warnings).toEqual(["ONCEWARD_HOOK_FAILED"]);
});

test("invalid options are refused before the first message", async () => {
  await using guard = await newGuard();
  const wrong: Partial<ConsumerOptions<string>>[] = [
    { namespace: "Charges" },
    { leaseMs: 1 },
    { waitMs: -1 },
    ...[Number.NaN, 0, 1.5, 2 ** 31, "5000"].map((ms) => ({ redeliverAfterMs: ms as number })),
    { redeliverAfterMs: 1000, maxRedeliverAfterMs: 999 },
    ...[0, 1.5, Number.NaN].map((maxAttempts) => ({ maxAttempts })),
    { key: "id" as never },
    { fingerprint: {} as never },
    { onDelivery: "warn" as never },
  ];
  for (const more of wrong) {
    expect(() => handlerOf(guard, () => {}, more)).toThrow(
      expect.objectContaining({ reason: "INVALID_REQUEST" }),
    );
  }
});

test("without a hook, problems are warnings, and operations in progress are not", async () => {
  await using guard = await newGuard();
  const warnings = collectWarnings();
  const handle = handlerOf(
    guard,
    (message) => {
      throw message === "released" ? new Error("the provider is down") : new TerminalError("card declined");
    },
    { onDelivery: undefined, key: (message) => (message === "" ? undefined : message) },
  );
  await guard.holdElsewhere("held");
  for (const message of ["held", "", "released", "failed", "failed"]) await handle(message);
  expect(warnings).toEqual(Array(3).fill("ONCEWARD_NOT_PROCESSED"));
});
