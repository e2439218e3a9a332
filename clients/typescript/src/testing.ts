/**
 * An Onceward in memory for unit tests: the real client over an implementation of the service that needs no server, no
 * database and no sleeping. It is held to the same contract tests as the server.
 *
 * ```ts
 * import { CompletionError, type Onceward } from "@onceward/client";
 * import { createTestingOnceward } from "@onceward/client/testing";
 * import { expect, test, vi } from "vitest";
 *
 * const order = { id: "order-1", cents: 100 };
 * const newBank = () => ({ charge: vi.fn(async (cents: number, key: string) => ({ cents, key })) });
 *
 * // The code under test.
 * const chargeOrder = (onceward: Onceward, bank: ReturnType<typeof newBank>) =>
 *   onceward.run({ namespace: "charges", key: order.id, fingerprint: order }, (claim) =>
 *     bank.charge(order.cents, claim.deriveKey("bank")),
 *   );
 *
 * test("an order that is delivered twice at once is charged once", async () => {
 *   await using testing = createTestingOnceward();
 *   const bank = newBank();
 *   const deliveries = [chargeOrder(testing.onceward, bank), chargeOrder(testing.onceward, bank)];
 *   const [first, second] = await Promise.all(deliveries);
 *   expect(second).toEqual(first);
 *   expect(bank.charge).toHaveBeenCalledOnce();
 *   expect(testing.counts).toMatchObject({ granted: 1, replayed: 1 });
 * });
 *
 * test("after a crash between the charge and its completion, the bank gets the same key again", async () => {
 *   await using testing = createTestingOnceward();
 *   const bank = newBank();
 *   testing.faults.failNext("complete", "INTERNAL");
 *   await expect(chargeOrder(testing.onceward, bank)).rejects.toThrow(CompletionError);
 *   testing.clock.advance(30_000);
 *   await chargeOrder(testing.onceward, bank);
 *   const [first, second] = bank.charge.mock.calls;
 *   expect(second).toEqual(first);
 * });
 * ```
 *
 * @module
 */

import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { IdempotencyService } from "./gen/onceward/v1/idempotency_pb.ts";
import type { Record as KnownRecord } from "./gen/onceward/v1/record_pb.ts";
import { createOnceward, type Onceward } from "./run/onceward.ts";
import { TestingClock } from "./testing/clock.ts";
import { Faults } from "./testing/faults.ts";
import { resolvePolicy, type TestingPolicy } from "./testing/policy.ts";
import { type ClaimOutcome, Records } from "./testing/records.ts";
import { recordMessage } from "./testing/replies.ts";
import { createService } from "./testing/service.ts";
import { Waiters } from "./testing/waiters.ts";

export type { TestingClock } from "./testing/clock.ts";
export type { CallName } from "./testing/faults.ts";
export type { TestingPolicy } from "./testing/policy.ts";
export type { RefusalReason } from "./testing/refusal.ts";

/** A test's settings; the defaults are the service's. */
export interface TestingOptions {
  /** The tenant's policy. Default: the service's. */
  readonly policy?: Partial<TestingPolicy>;
  /** Settings of single namespaces that differ from the tenant's policy. Default: none. */
  readonly namespaces?: Readonly<Record<string, Partial<TestingPolicy>>>;
  /** The clock's initial time. Default: the real time. */
  readonly now?: Date;
}

/** The number of Claim calls, by their outcome. */
export type ClaimCounts = Readonly<Record<ClaimOutcome["kind"], number>>;

/** See {@link createTestingOnceward}. */
export interface TestingOnceward extends AsyncDisposable {
  /** A client for the code under test. */
  readonly onceward: Onceward;
  /** For more clients of the same service: `createOnceward({ transport, owner: "another worker" })`. */
  readonly transport: Transport;
  readonly clock: TestingClock;
  readonly faults: Omit<Faults, "around">;
  /** How often a claim was granted, and how often a repeat got another answer. */
  readonly counts: ClaimCounts;
  /** The number of claims that wait for another holder now. */
  readonly waiting: number;
  /** Returns all records, as Lookup returns them, in the order in which the keys were first claimed. */
  records(): KnownRecord[];
}

/**
 * Creates a service in memory, used by no other test, and a client of it. Its clock stands still until the test moves
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
  const { policy = {}, namespaces = {}, now = new Date() } = options;
  const policies = new Map(
    Object.entries(namespaces).map(([name, own]) => [name, resolvePolicy(policy, own)]),
  );
  const tenantPolicy = resolvePolicy(policy);
  const waiters = new Waiters();
  const clock = new TestingClock(now.getTime(), () => waiters.wake());
  const records = new Records(clock);
  const faults = new Faults();
  const counts = { granted: 0, recovered: 0, inProgress: 0, replayed: 0, ambiguous: 0 };
  const policyFor = (namespace: string) => policies.get(namespace) ?? tenantPolicy;
  const service = createService({ clock, records, policyFor, waiters, faults, counts });
  const transport = createRouterTransport(({ service: route }) => {
    route(IdempotencyService, service);
  });
  const onceward = createOnceward({ transport });
  return {
    onceward,
    transport,
    clock,
    faults,
    counts,
    get waiting() {
      return waiters.count;
    },
    records: () => records.all().map((record) => recordMessage(record, clock.nowMs)),
    [Symbol.asyncDispose]: () => onceward.close(),
  };
}
