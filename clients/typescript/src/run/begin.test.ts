import { beforeEach, expect, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { createHandler } from "../consumers/handle.ts";
import { idempotent } from "../http.ts";
import type { TestingOnceward } from "../testing.ts";
import { type Claim, ClaimAbandoned } from "./claim.ts";

const OPTIONS = { namespace: "charges", marksBegin: true, onError: "unknown" } as const;
const refuse = () => Promise.reject(new Error("no card"));

let testing: TestingOnceward;

beforeEach(() => {
  testing = newTesting({ policy: { onLeaseExpiry: "HOLD" } });
});

test("a function that was abandoned before it began can't begin once its claim is released", async () => {
  let left: Claim | undefined;
  const running = testing.onceward.run({ ...OPTIONS, key: "order-1" }, (claim) => {
    left = claim;
    throw new ClaimAbandoned("The client left.");
  });
  await expect(running).rejects.toThrow(ClaimAbandoned);
  await expect(left?.begin()).rejects.toMatchObject({ reason: "LEASE_LOST" });
  expect(testing.records()).toMatchObject([{ releaseReason: expect.stringMatching("Error") }]);
});

test.each<[string, (testing: TestingOnceward) => Promise<unknown>]>([
  [
    "a wrapped function",
    ({ onceward }) => onceward.namespace("charges", OPTIONS).wrap(refuse, { key: String })("k"),
  ],
  ["a consumer", ({ onceward }) => createHandler(onceward, OPTIONS, String, refuse)("k")],
  [
    "a guarded handler",
    ({ onceward }) => {
      const headers = { "idempotency-key": "k" };
      return idempotent(
        onceward,
        { ...OPTIONS, caller: () => "a" },
        refuse,
      )(new Request("http://localhost/", { method: "POST", headers }));
    },
  ],
])("%s that fails before it begins releases its claim", async (_, call) => {
  await call(testing).catch(() => {});
  expect(testing.records()).toMatchObject([{ releaseReason: expect.stringMatching("Error") }]);
});
