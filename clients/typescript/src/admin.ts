/**
 * The published entry `@onceward/client/admin`: the administrative services as plain RPC clients, their messages, and the
 * error class of every reason of the catalogue. `tenant_admin.proto`, `operator.proto` and `identity.proto` document each RPC.
 */

import { type Client, createClient } from "@connectrpc/connect";
import { IdentityService } from "./gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "./gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "./gen/onceward/v1/tenant_admin_pb.ts";
import { type ConnectionOptions, connect } from "./transport/connection.ts";

export * from "./errors/catalogue.ts";
export { errorFromCall } from "./errors/mapping.ts";
export * from "./gen/onceward/v1/identity_pb.ts";
export * from "./gen/onceward/v1/operator_pb.ts";
export * from "./gen/onceward/v1/policy_pb.ts";
export * from "./gen/onceward/v1/tenant_admin_pb.ts";
export * from "./gen/onceward/v1/tenant_pb.ts";
export {
  type ResolveCounts,
  type ResolveOptions,
  type Resolver,
  type ResolverOptions,
  resolveAmbiguous,
  startResolver,
} from "./run/resolver.ts";

interface Closeable {
  /** Closes the connection; calls in flight fail. */
  close(): void;
}

/** The RPCs of TenantAdminService, with Connect's options and errors; `errorFromCall` converts the errors. */
export type TenantAdmin = Client<typeof TenantAdminService> & Closeable;
/** The RPCs of IdentityService, with Connect's options and errors; `errorFromCall` converts the errors. */
export type Identity = Client<typeof IdentityService> & Closeable;
/** The RPCs of OperatorService, with Connect's options and errors; `errorFromCall` converts the errors. */
export type Operator = Client<typeof OperatorService> & Closeable;

/**
 * Creates a client that administers the tenant of an API key with the role TENANT_ADMIN. The first call connects.
 *
 * @throws InvalidRequestError for an invalid address or key.
 */
export function createTenantAdmin(options: ConnectionOptions): TenantAdmin {
  const { transport, close } = connect(options);
  return { ...createClient(TenantAdminService, transport), close };
}

/**
 * Creates a client that operates the service, with an API key of the role OPERATOR. The first call connects.
 *
 * @throws InvalidRequestError for an invalid address or key.
 */
export function createOperator(options: ConnectionOptions): Operator {
  const { transport, close } = connect(options);
  return { ...createClient(OperatorService, transport), close };
}

/**
 * Creates a client that identifies its credential, of any role. The first call connects.
 *
 * @throws InvalidRequestError for an invalid address or key.
 */
export function createIdentity(options: ConnectionOptions): Identity {
  const { transport, close } = connect(options);
  return { ...createClient(IdentityService, transport), close };
}
