import { expect, test } from "vitest";
import { OncewardError } from "./errors.ts";

test("an error about a claim can be written as JSON, with its fencing token as text", () => {
  const claim = { namespace: "charges", key: "order-1", fencingToken: 2n ** 60n };
  const error = new OncewardError("LEASE_LOST", "The lease was lost.", { claim });
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({
    name: "OncewardError",
    reason: "LEASE_LOST",
    claim: { namespace: "charges", key: "order-1", fencingToken: "1152921504606846976" },
  });
});
