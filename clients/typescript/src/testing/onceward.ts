import { createOnceward, type Onceward } from "../run/onceward.ts";
import { createTestingService, type TestingOptions, type TestingService } from "./testing-service.ts";

/** See {@link createTestingOnceward}. */
export interface TestingOnceward extends TestingService, AsyncDisposable {
  /** A client for the code under test. */
  readonly onceward: Onceward;
}

/**
 * Creates a service in memory, used by no other test, and a client of it. Its clock does not move until the test moves
 * it.
 *
 * - `onceward.api.claim({ namespace, key, owner })` makes another holder's claim.
 * - Policy HOLD: `createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } })`.
 * - Waiting for another holder takes real time: give runs that meet one a small `waitMs`, or 0.
 * - Install fake timers after the client is loaded: then calls don't wait for them. Waiting, heartbeats and retries
 *   do.
 *
 * Dispose it, or close `onceward`, at the end of the test.
 */
export function createTestingOnceward(options: TestingOptions = {}): TestingOnceward {
  const service = createTestingService(options);
  const onceward = createOnceward({ transport: service.transport });
  return Object.assign(service, { onceward, [Symbol.asyncDispose]: () => onceward.close() });
}
