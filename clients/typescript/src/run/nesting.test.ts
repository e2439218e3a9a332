import { beforeEach, expect, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import type { TestingOnceward } from "../testing.ts";

const ORDER = { namespace: "charges", key: "order-1" };
const OTHER = { ...ORDER, key: "order-2" };

let testing: TestingOnceward;

beforeEach(() => {
  testing = newTesting();
});

test("a run within the function of a run with the same key is refused at once, however deep", async () => {
  const { onceward } = testing;
  const charge = onceward.namespace(ORDER.namespace).wrap(() => "charged", { key: (key: string) => key });
  const nested = onceward.run(ORDER, () => onceward.run(OTHER, async () => await charge(ORDER.key)));
  await expect(nested).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    violations: [
      { field: "key", description: expect.stringContaining("the run whose function starts this one") },
    ],
    claim: { ...ORDER, fencingToken: undefined },
  });
  // Both runs have released their claims.
  expect(await onceward.run(ORDER, () => "later")).toBe("later");
});

test("runs within a function have other keys or namespaces, or the same key one after the other", async () => {
  const { onceward } = testing;
  const charge = () => onceward.run(OTHER, () => "charged");
  const value = onceward.run(ORDER, async () => [
    await charge(),
    await charge(),
    await onceward.run({ ...ORDER, namespace: "mails" }, () => "sent"),
  ]);
  expect(await value).toEqual(["charged", "charged", "sent"]);
});

test("a run waits for another one with its key, also if one function started both", async () => {
  const { onceward } = testing;
  let effects = 0;
  const charge = () => onceward.run(OTHER, () => ++effects);
  expect(await onceward.run(ORDER, () => Promise.all([charge(), charge()]))).toEqual([1, 1]);
});

test("a run that a function leaves behind gets the function's value", async () => {
  const { onceward } = testing;
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  let late: Promise<string> | undefined;
  await onceward.run(ORDER, () => {
    late = left.then(() => onceward.run(ORDER, () => "late"));
    return "first";
  });
  leave();
  expect(await late).toBe("first");
});
