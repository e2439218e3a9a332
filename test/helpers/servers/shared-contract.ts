import { describe, expect, onTestFinished } from "vitest";
import { createTestingOnceward, type TestingPolicy } from "../../../clients/typescript/src/testing.ts";
import type { IdempotencyClient } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";
import { describeContract, describeContractOnce } from "./contract.ts";
import type { PolicyColumns } from "./tenants.ts";

/** What those parts of the contract need that the in-memory Onceward keeps as well as a server does. */
export interface SharedContract {
  /** A caller of a fresh tenant with a policy, and with policies of namespaces. */
  newCaller(policy?: PolicyColumns, namespaces?: NamespacePolicies): Promise<SharedCaller>;
}

/** The policies of namespaces, by their names. */
export type NamespacePolicies = Readonly<Record<string, PolicyColumns>>;

/** A caller of the service, the time of whose records the test moves. */
export interface SharedCaller {
  readonly client: IdempotencyClient;
  /** For the tenant's records it is as if so many seconds had passed. */
  timePasses(seconds: number): Promise<void>;
  /** What the service's clock shows, in milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Deletes what retention has ended, which must never change an answer. */
  sweep(): Promise<void>;
  /** Resolves once exactly so many calls wait for a record to resolve. */
  untilWaiting(count: number): Promise<void>;
  /** The header that a call says with how long it waits; the client itself, unlike with `timeoutMs`, keeps no time. */
  timeoutHeader(timeoutMs: number): Readonly<Record<string, string>>;
}

/**
 * Runs a part of the contract against a server, over each transport, and, unless the run is about another Postgres, against
 * the in-memory Onceward.
 */
export function describeSharedContract(title: string, tests: (contract: SharedContract) => void): void {
  describeContract(title, tests);
  describeInMemory(title, tests);
}

/** Does the same against a server over one transport: for behaviour behind the pipeline. */
export function describeSharedContractOnce(title: string, tests: (contract: SharedContract) => void): void {
  describeContractOnce(title, tests);
  describeInMemory(title, tests);
}

function describeInMemory(title: string, tests: (contract: SharedContract) => void): void {
  if (isOtherPostgres()) return;
  describe(title, () => {
    describe("in memory", () => tests({ newCaller: newCallerInMemory }));
  });
}

/** A caller of an Onceward of its own. */
export async function newCallerInMemory(
  policy: PolicyColumns = {},
  namespaces: NamespacePolicies = {},
): Promise<SharedCaller> {
  const testing = createTestingOnceward({
    policy: policyOf(policy),
    namespaces: Object.fromEntries(
      Object.entries(namespaces).map(([name, columns]) => [name, policyOf(columns)]),
    ),
  });
  onTestFinished(() => testing.onceward.close());
  return {
    client: testing.onceward.api,
    timePasses: async (seconds) => testing.clock.advance(seconds * 1000),
    nowMs: () => testing.clock.nowMs,
    sweep: async () => {},
    untilWaiting: (count) => expect.poll(() => testing.waiting, { interval: 1 }).toBe(count),
    timeoutHeader: (timeoutMs) => ({ "connect-timeout-ms": String(timeoutMs) }),
  };
}

/** `key_retention_s` is `keyRetentionS`. */
function policyOf(columns: PolicyColumns): Partial<TestingPolicy> {
  const fields = Object.entries(columns).map(([column, value]) => [
    column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(fields) as Partial<TestingPolicy>;
}
