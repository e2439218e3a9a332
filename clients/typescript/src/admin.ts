/**
 * The published entry `@onceward/client/admin`: the services for those who tune and run Onceward, as plain RPC clients,
 * and their messages. What each RPC promises is said in `tenant_admin.proto` and `operator.proto`.
 */

import { type Client, createClient } from "@connectrpc/connect";
import { OperatorService } from "./gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "./gen/onceward/v1/tenant_admin_pb.ts";
import { type ConnectionOptions, connect } from "./transport/connection.ts";

export { errorFromCall } from "./errors/mapping.ts";
export * from "./gen/onceward/v1/operator_pb.ts";
export * from "./gen/onceward/v1/policy_pb.ts";
export * from "./gen/onceward/v1/tenant_admin_pb.ts";
export * from "./gen/onceward/v1/tenant_pb.ts";

interface Closeable {
  /** Closes the connection; calls that are open end. */
  close(): void;
}

/** The RPCs of TenantAdminService, with connect's options and errors; `errorFromCall` reads those. */
export type TenantAdmin = Client<typeof TenantAdminService> & Closeable;
/** The RPCs of OperatorService, with connect's options and errors; `errorFromCall` reads those. */
export type Operator = Client<typeof OperatorService> & Closeable;

/**
 * Administers the tenant of an API key with the role TENANT_ADMIN.
 *
 * @throws InvalidRequestError for what is no address or no key. Opens nothing yet.
 */
export function createTenantAdmin(options: ConnectionOptions): TenantAdmin {
  const { transport, close } = connect(options);
  return { ...createClient(TenantAdminService, transport), close };
}

/**
 * Operates the service with an API key of the role OPERATOR.
 *
 * @throws InvalidRequestError for what is no address or no key. Opens nothing yet.
 */
export function createOperator(options: ConnectionOptions): Operator {
  const { transport, close } = connect(options);
  return { ...createClient(OperatorService, transport), close };
}
