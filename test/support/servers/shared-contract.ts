import { createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished } from "vitest";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { createTestingOnceward, type TestingPolicy } from "../../../clients/typescript/src/testing.ts";
import type { IdempotencyClient } from "../calls/clients.ts";
import { isOtherPostgres } from "../database/database.ts";
import { describeContract, describeContractOnce } from "./contract.ts";
import { isEncryptedRun } from "./encryption.ts";
import type { PolicyColumns } from "./tenants.ts";

/** The environment of tests of the contract that both a server and the in-memory Onceward must pass. */
export interface SharedContract {
  /** Creates a caller of a new tenant with a policy, and with policies of namespaces. */
  newCaller(policy?: PolicyColumns, namespaces?: NamespacePolicies): Promise<SharedCaller>;
}

/** Policies by namespace. */
export type NamespacePolicies = Readonly<Record<string, PolicyColumns>>;

/** A caller of the service, the time of whose records the test moves. */
export interface SharedCaller {
  readonly client: IdempotencyClient;
  /** Changes the tenant's records as if so many seconds had passed. */
  timePasses(seconds: number): Promise<void>;
  /** Returns the time of the service's clock, in milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Deletes records whose retention has ended, which must never change an answer. */
  sweep(): Promise<void>;
  /** Resolves once exactly `count` calls wait for a record to resolve. */
  untilWaiting(count: number): Promise<void>;
  /**
   * Returns the header with a call's deadline. Unlike with `timeoutMs`, the client itself measures no time.
   */
  timeoutHeader(timeoutMs: number): Readonly<Record<string, string>>;
}

/**
 * Runs a part of the contract against a server, over each transport, and against the in-memory Onceward,
 * except in runs with another Postgres or with encryption at rest.
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
  if (isOtherPostgres() || isEncryptedRun()) return;
  describe(title, () => {
    describe("in memory", () => tests({ newCaller: newCallerInMemory }));
  });
}

/** Creates a caller of a new in-memory Onceward. */
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
    client: createClient(IdempotencyService, testing.transport),
    timePasses: async (seconds) => testing.clock.advance(seconds * 1000),
    nowMs: () => testing.clock.nowMs,
    sweep: async () => {},
    untilWaiting: (count) => expect.poll(() => testing.waiting, { interval: 1 }).toBe(count),
    timeoutHeader: (timeoutMs) => ({ "connect-timeout-ms": String(timeoutMs) }),
  };
}

/** Returns a policy with its columns' names in camel case: `key_retention_s` is `keyRetentionS`. */
function policyOf(columns: PolicyColumns): Partial<TestingPolicy> {
  const fields = Object.entries(columns).map(([column, value]) => [
    column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(fields) as Partial<TestingPolicy>;
}
