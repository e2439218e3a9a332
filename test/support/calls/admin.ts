import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { describe } from "vitest";
import { IdentityService } from "../../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import type { ServerTuning } from "../../../server/src/replica/connect.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
import type { TestDatabase } from "../database/database.ts";
import { ONE_TRANSPORT, transportsUnderTest } from "../network/transports-under-test.ts";
import type { TestServer } from "../servers/server.ts";
import { createApiKey, createTenant, type PolicyColumns, type TestTenant } from "../servers/tenants.ts";
import { useServer } from "../servers/use-server.ts";
import { connectClient, type IdempotencyClient, TRANSPORTS, type TransportName } from "./clients.ts";

export type TenantAdminClient = Client<typeof TenantAdminService>;
export type OperatorClient = Client<typeof OperatorService>;

/** Returns what connects clients of a service with a credential. */
function connecting<Service extends DescService>(service: Service) {
  return (server: Addresses, credential: string, transport: TransportName = "native gRPC") => {
    const authorize: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${credential}`);
      return next(request);
    };
    return createClient(service, TRANSPORTS[transport](server, [authorize]));
  };
}

/** Returns the client of a tenant's administrator. */
export const connectAdmin = connecting(TenantAdminService);
/** Returns the client of an operator. */
export const connectOperator = connecting(OperatorService);
/** Returns a client that asks what its credential is. */
export const connectIdentity = connecting(IdentityService);

/** A tenant with a caller and an administrator. */
export interface AdministeredTenant {
  readonly tenant: TestTenant;
  readonly caller: IdempotencyClient;
  readonly admin: TenantAdminClient;
  readonly adminKey: string;
}

/** The environment of a test of the administration: one server and database for all tests of its file. */
export interface AdminWorld {
  readonly database: TestDatabase;
  readonly server: TestServer;
  /** Creates a tenant whose clients use the transport under test. */
  administeredTenant(policy?: PolicyColumns): Promise<AdministeredTenant>;
  /** Creates an operator with a new key. */
  operator(): Promise<OperatorClient>;
}

type AdministrationTests = (world: () => AdminWorld, transport: TransportName) => void;

interface ServerSettings {
  readonly env?: Readonly<Record<string, string>>;
  readonly tuning?: ServerTuning;
}

function describing(transports: () => readonly TransportName[]) {
  return (name: string, ...args: [AdministrationTests] | [ServerSettings, AdministrationTests]): void => {
    const [{ env, tuning }, tests] = args.length === 1 ? [{} as ServerSettings, ...args] : args;
    describe.each(transports())(`${name}, over %s`, (transport) => {
      const { database, server } = useServer(env, tuning);
      const world = createWorld(database, server, transport);
      tests(() => world, transport);
    });
  };
}

/**
 * Runs the tests on a new database and server, over one transport. `env` overrides the server's configuration,
 * `tuning` its times.
 */
export const describeAdministration = describing(() => ONE_TRANSPORT);
/** Does the same over each transport: for fields and errors that depend on the transport. */
export const describeAdministrationOverAll = describing(transportsUnderTest);

/** Creates the environment for a server that the test started itself. */
export function createWorld(
  database: TestDatabase,
  server: TestServer,
  transport: TransportName = "native gRPC",
): AdminWorld {
  return {
    database,
    server,
    async administeredTenant(policy = {}) {
      const tenant = await createTenant(database, policy);
      const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
      return {
        tenant,
        adminKey,
        caller: connectClient(server, tenant.apiKey, transport),
        admin: connectAdmin(server, adminKey, transport),
      };
    },
    async operator() {
      return connectOperator(server, await createApiKey(database, { role: "OPERATOR" }), transport);
    },
  };
}
