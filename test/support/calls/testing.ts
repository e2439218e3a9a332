import { createTestingOnceward, type TestingOnceward, type TestingOptions } from "@onceward/client/testing";
import { onTestFinished } from "vitest";

/** Creates a service in memory with a client, which closes at once when the test has ended. */
export function newTesting(options?: TestingOptions): TestingOnceward {
  const testing = createTestingOnceward(options);
  onTestFinished(() => testing.onceward.close({ timeoutMs: 0 }));
  return testing;
}
