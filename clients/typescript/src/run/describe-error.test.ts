import { expect, test, vi } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { createOnceward } from "./onceward.ts";

const operation = { namespace: "charges", key: "order-1" };
const secret = "connect ECONNREFUSED postgres://billing:s3cr3t@db/prod for ann@example.com";

class CardError extends Error {
  override readonly name = "CardError";
  readonly code = "card_declined";
}

async function reasonOf(thrown: unknown, options: { describeError?: (error: unknown) => string } = {}) {
  await using testing = createTestingOnceward();
  await using onceward = createOnceward({ transport: testing.transport, ...options });
  const fn = () => {
    throw thrown;
  };
  await expect(onceward.run(operation, fn)).rejects.toBe(thrown);
  return testing.records()[0]?.releaseReason;
}

test.each([
  [new Error(secret), "Error"],
  [new CardError(secret), "CardError (card_declined)"],
  [Object.assign(new TypeError(secret), { code: secret }), "TypeError"],
  [secret, "string"],
  [null, "null"],
])("the reason of a release names the error %#, and does not hold its message", async (thrown, reason) => {
  expect(await reasonOf(thrown)).toBe(reason);
});

test("a client that says so stores its own description, unless its function throws", async () => {
  const thrown = new Error(secret);
  expect(await reasonOf(thrown, { describeError: (error) => `${error}` })).toBe(`Error: ${secret}`);
  const describeError = vi.fn(() => {
    throw new Error("no description");
  });
  expect(await reasonOf(thrown, { describeError })).toBe("Error");
});

test("the description of a run counts before the client's; one that is not a function is refused", async () => {
  await using testing = createTestingOnceward();
  const run = testing.onceward.run({ ...operation, describeError: () => "declined" }, () => {
    throw new Error(secret);
  });
  await expect(run).rejects.toThrow();
  expect(testing.records()).toMatchObject([{ releaseReason: "declined" }]);
  expect(() => createOnceward({ transport: testing.transport, describeError: "message" as never })).toThrow(
    "describeError must be a function",
  );
});
