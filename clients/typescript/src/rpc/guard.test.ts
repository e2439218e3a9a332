import { expect, test } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { connectFailures } from "./connect-failures.ts";
import { createCallGuard } from "./guard.ts";
import type { RpcOptions } from "./options.ts";

test.each([
  ["caller", undefined],
  ["key", "request_id"],
  ["fingerprint", {}],
  ["stores", [3]],
  ["required", 0],
  ["namespace", "Charges"],
  ["leaseMs", 5],
  ["waitMs", -1],
])("the option %s is checked when the guard is made: %j", (field, value) => {
  const { onceward } = createTestingOnceward();
  const options = { namespace: "charges", caller: () => "a-1", [field]: value } as RpcOptions<unknown>;
  const violations = [expect.objectContaining({ field })];
  expect(() => createCallGuard(onceward, options, connectFailures)).toThrow(
    expect.objectContaining({ violations }),
  );
});
