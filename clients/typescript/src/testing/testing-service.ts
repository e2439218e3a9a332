import { createRouterTransport, type Transport } from "@connectrpc/connect";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import type { Record as KnownRecord } from "../gen/onceward/v1/record_pb.ts";
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

/** A service in memory, without a client. */
export interface TestingService {
  /** For clients of this service: `createOnceward({ transport, owner: "another worker" })`. */
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

/** Creates a service in memory, which runs in a browser, too. Its clock does not move until the caller moves it. */
export function createTestingService(options: TestingOptions = {}): TestingService {
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
  return {
    transport,
    clock,
    faults,
    counts,
    get waiting() {
      return waiters.count;
    },
    records: () => records.all().map((record) => recordMessage(record, clock.nowMs)),
  };
}
