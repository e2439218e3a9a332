import { beforeEach, expect, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { currentClaim } from "../index.ts";
import { createTestingOnceward, type TestingOnceward } from "../testing.ts";

const ORDER = { namespace: "orders", key: "order-1" };
const NONE = "currentClaim must be called within a guarded function";

let testing: TestingOnceward;

beforeEach(() => {
  testing = newTesting();
});

test("the current claim is that of the innermost function, also after awaits", async () => {
  const { onceward } = testing;
  const keys: string[] = [];
  const note = async () => {
    await onceward.api.lookup(ORDER);
    keys.push(currentClaim().key);
  };
  await onceward.run(ORDER, async () => {
    await note();
    await onceward.namespace("charges").wrap(note, { key: (key: string) => key })("charge-1");
    await note();
  });
  expect(keys).toEqual(["order-1", "charge-1", "order-1"]);
  expect(() => currentClaim()).toThrow(NONE);
});

test("a hundred concurrent functions have their own claims", async () => {
  const all = Promise.withResolvers<void>();
  let running = 0;
  const runs = Array.from({ length: 100 }, (_, index) =>
    testing.onceward.run({ ...ORDER, key: `order-${index}` }, async (claim) => {
      if (++running === 100) all.resolve();
      await all.promise;
      return currentClaim() === claim;
    }),
  );
  expect(new Set(await Promise.all(runs))).toEqual(new Set([true]));
});

test("code that a function leaves behind has no current claim once the function has ended", async () => {
  const ended = Promise.withResolvers<void>();
  let left: Promise<unknown> | undefined;
  await testing.onceward.run(ORDER, () => {
    left = ended.promise.then(() => currentClaim());
  });
  ended.resolve();
  await expect(left).rejects.toThrow(NONE);
});

test("a run of another client within a function may have the same key", async () => {
  await using other = createTestingOnceward();
  expect(await testing.onceward.run(ORDER, () => other.onceward.run(ORDER, () => "other"))).toBe("other");
});
