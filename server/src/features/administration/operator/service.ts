import type { Handlers } from "../../../core/calls/call.ts";
import type { OperatorService } from "../../../gen/onceward/v1/operator_pb.ts";
import { createDiagnoseHandlers } from "../../doctor/rpc/diagnose.ts";
import { createTenantUsageHandlers } from "../../usage/rpc/tenant-usage.ts";
import { createOperatorKeyHandlers } from "./operator-keys.ts";
import type { OperatorOptions } from "./options.ts";
import { createServerInfoHandlers } from "./server-info.ts";
import { createTenantStateHandlers } from "./tenant-states.ts";
import { createTenantHandlers } from "./tenants.ts";

/** Returns OperatorService. `operator.proto` describes each RPC. */
export function createOperatorService(options: OperatorOptions): Handlers<typeof OperatorService> {
  return {
    ...createTenantHandlers(options),
    ...createTenantStateHandlers(options),
    ...createTenantUsageHandlers(options),
    ...createOperatorKeyHandlers(options),
    ...createServerInfoHandlers(options),
    ...createDiagnoseHandlers(options),
  };
}
