import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import { connectClient, type IdempotencyClient, TRANSPORTS, type TransportName } from "./clients.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { ageRecords } from "./records.ts";
import { startTestServer, type TestServer } from "./server.ts";
import { createTenant, type PolicyColumns, type TestTenant } from "./tenants.ts";

/** What a test of the contract works with: one server and database for all tests of its file. */
export interface Contract {
  readonly transport: TransportName;
  readonly database: TestDatabase;
  readonly server: TestServer;
  /** A caller of a fresh tenant with a policy, over the transport under test. */
  newCaller(policy?: PolicyColumns): Promise<Caller>;
  /** A client with another credential, or with none, over the transport under test. */
  connect(apiKey: string | undefined): IdempotencyClient;
  /** Another server on the same database, gone when the test is. */
  newReplica(env?: Readonly<Record<string, string>>): Promise<TestServer>;
}

/** Somebody who calls the service, and whose records' time the test moves. */
export interface Caller {
  readonly tenant: TestTenant;
  readonly client: IdempotencyClient;
  /** For the tenant's records it is as if so many seconds had passed. */
  timePasses(seconds: number): Promise<void>;
}

/** Runs a part of the contract over each transport. `env` overrides the server's configuration. */
export function describeContract(
  title: string,
  tests: (contract: Contract) => void,
  env: Readonly<Record<string, string>> = {},
): void {
  describe(title, () => {
    let database: TestDatabase;
    let server: TestServer;

    beforeAll(async () => {
      database = await createTestDatabase();
      server = await startTestServer(database.url, env);
    });

    afterAll(async () => {
      await server?.stop();
      await database?.drop();
    });

    describe.each(Object.keys(TRANSPORTS) as TransportName[])("over %s", (transport) => {
      tests(contractOver(transport, () => ({ database, server })));
    });
  });
}

/** The server is there only once the tests run, and so it is asked for, not given. */
function contractOver(
  transport: TransportName,
  running: () => { readonly database: TestDatabase; readonly server: TestServer },
): Contract {
  return {
    transport,
    get database() {
      return running().database;
    },
    get server() {
      return running().server;
    },
    connect: (apiKey) => connectClient(running().server, apiKey, transport),
    async newCaller(policy) {
      const { database, server } = running();
      const tenant = await createTenant(database, policy);
      return {
        tenant,
        client: connectClient(server, tenant.apiKey, transport),
        timePasses: (seconds) => ageRecords(database, tenant, seconds),
      };
    },
    async newReplica(env) {
      const replica = await startTestServer(running().database.url, env);
      onTestFinished(() => replica.stop());
      return replica;
    },
  };
}
