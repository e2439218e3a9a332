import { describe } from "vitest";
import {
  connectClient,
  type IdempotencyClient,
  type TransportName,
  timeoutHeader,
} from "../calls/clients.ts";
import { ageRecords } from "../calls/records.ts";
import type { TestDatabase } from "../database/database.ts";
import { sweep } from "../database/time.ts";
import { ONE_TRANSPORT, transportsUnderTest } from "../network/transports-under-test.ts";
import { encryptionKeys, isEncryptedRun } from "./encryption.ts";
import type { TestServer } from "./server.ts";
import type { NamespacePolicies, SharedCaller, SharedContract } from "./shared-contract.ts";
import { createTenant, type PolicyColumns, setNamespacePolicy, type TestTenant } from "./tenants.ts";
import { type ServerInUse, startServerOfTest, useServer } from "./use-server.ts";
import { untilWaiting } from "./waiters.ts";

/** The environment of a test of the server's contract: one server and database for all tests of its file. */
export interface Contract extends SharedContract {
  readonly transport: TransportName;
  readonly database: TestDatabase;
  readonly server: TestServer;
  /** Creates a caller of a new tenant, over the transport under test. */
  newCaller(policy?: PolicyColumns, namespaces?: NamespacePolicies): Promise<Caller>;
  /** Returns a client with another credential, or with none, over the transport under test. */
  connect(apiKey: string | undefined): IdempotencyClient;
  /** Starts another server on the same database; stops it when the test ends. */
  newReplica(env?: Readonly<Record<string, string>>): Promise<TestServer>;
}

type Environment = Readonly<Record<string, string>>;

/** A caller of a server. */
export interface Caller extends SharedCaller {
  readonly tenant: TestTenant;
}

/**
 * Runs a part of the contract against a server, over each transport. `env` overrides the server's
 * configuration. Use `describeSharedContract` for tests that need neither the database nor credentials nor
 * replicas.
 */
export function describeContract(
  title: string,
  tests: (contract: Contract) => void,
  env: Environment = {},
): void {
  describeContractOver(transportsUnderTest(), title, tests, env);
}

/**
 * Does the same over one transport: for behaviour behind the pipeline, which is the same over every
 * transport.
 */
export function describeContractOnce(
  title: string,
  tests: (contract: Contract) => void,
  env: Environment = {},
): void {
  describeContractOver(ONE_TRANSPORT, title, tests, env);
}

function describeContractOver(
  transports: readonly TransportName[],
  title: string,
  tests: (contract: Contract) => void,
  env: Environment,
): void {
  describe(title, () => {
    const running = useServer({ ...keysOfRun(), ...env });
    describe.each(transports)("over %s", (transport) => {
      tests(contractOver(transport, running));
    });
  });
}

function keysOfRun(): Environment {
  return isEncryptedRun() ? encryptionKeys(1) : {};
}

function contractOver(transport: TransportName, { database, server }: ServerInUse): Contract {
  return {
    transport,
    database,
    server,
    connect: (apiKey) => connectClient(server, apiKey, transport),
    async newCaller(policy, namespaces = {}) {
      const tenant = await createTenant(database, policy);
      for (const [name, own] of Object.entries(namespaces)) {
        await setNamespacePolicy(database, tenant, name, own);
      }
      return {
        tenant,
        client: connectClient(server, tenant.apiKey, transport),
        timePasses: (seconds) => ageRecords(database, tenant, seconds),
        // Time passes by making the records older: the database's clock is not changed.
        nowMs: () => Date.now(),
        sweep: () => sweep(database),
        untilWaiting: (count) => untilWaiting(server, count),
        timeoutHeader: (timeoutMs) => timeoutHeader(transport, timeoutMs),
      };
    },
    async newReplica(env) {
      return await startServerOfTest(database.url, { ...keysOfRun(), ...env });
    },
  };
}
