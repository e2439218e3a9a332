import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import type { Record as KnownRecord } from "../gen/onceward/v1/record_pb.ts";
import { createOnceward, type Onceward } from "../run/onceward.ts";
import { TestingClock } from "./clock.ts";
import { Faults } from "./faults.ts";
import { resolvePolicy, type TestingPolicy } from "./policy.ts";
import { type ClaimOutcome, Records } from "./records.ts";
import { recordMessage } from "./replies.ts";
import { createService } from "./service.ts";
import { Waiters } from "./waiters.ts";

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
