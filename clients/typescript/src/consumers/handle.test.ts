import { expect, onTestFinished, test } from "vitest";
import { AmbiguousError, InProgressError, OutcomeUnknownError } from "../index.ts";
import { createTestingOnceward } from "../testing.ts";
import { createHandler } from "./handle.ts";

test("a function that can't know its outcome has not failed, on its last attempt either", async () => {
  const { onceward, clock } = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  onTestFinished(() => onceward.close());
  const options = { namespace: "charges", maxAttempts: 1, onDelivery: () => {} };
  const unknown = new OutcomeUnknownError("the bank timed out");
  const handle = createHandler(
    onceward,
    options,
    (message: string) => message,
    () => Promise.reject(unknown),
  );
  expect(await handle("order-1")).toMatchObject({ kind: "released", error: unknown });
  expect(await handle("order-1")).toMatchObject({ kind: "postponed", error: expect.any(InProgressError) });
  clock.advance(30_000);
  expect(await handle("order-1")).toMatchObject({ kind: "postponed", error: expect.any(AmbiguousError) });
});
