import type { Answer, Call, Handlers } from "../../../core/calls/call.ts";
import type { TenantAdminService } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { createKeyQualityHandlers } from "../../insight/rpc/key-quality.ts";
import { createRetentionAdviceHandlers } from "../../insight/rpc/retention-advice.ts";
import { createUsageHandlers } from "../../usage/rpc/usage.ts";
import { createApiKeyHandlers } from "./api-keys.ts";
import { createHistoryHandlers } from "./history.ts";
import { createNamespaceHandlers } from "./namespaces.ts";
import type { TenantAdminOptions } from "./options.ts";
import { createRecordCountHandlers } from "./record-counts.ts";
import { createRecordJobHandlers } from "./record-jobs.ts";
import { createRecordHandlers } from "./records.ts";
import { createResolveAmbiguousHandlers } from "./resolve-ambiguous.ts";
import { createTenantHandlers } from "./tenant.ts";

/** Returns TenantAdminService. `tenant_admin.proto` describes each RPC. */
export function createTenantAdminService(options: TenantAdminOptions): Handlers<typeof TenantAdminService> {
  return admitted(options.admission, {
    ...createTenantHandlers(options),
    ...createNamespaceHandlers(options),
    ...createRecordHandlers(options),
    ...createRecordCountHandlers(options),
    ...createResolveAmbiguousHandlers(options),
    ...createRecordJobHandlers(options),
    ...createApiKeyHandlers(options),
    ...createHistoryHandlers(options),
    ...createUsageHandlers(options),
    ...createRetentionAdviceHandlers(options),
    ...createKeyQualityHandlers(options),
  });
}

/** Wraps the handlers so that a call beyond the tenant's quotas is refused before anything else is done. */
function admitted(
  admission: TenantAdminOptions["admission"],
  handlers: Handlers<typeof TenantAdminService>,
): Handlers<typeof TenantAdminService> {
  const all = Object.entries(handlers) as [string, (request: never, call: Call) => Answer<unknown>][];
  const wrapped = all.map(([name, handle]) => [
    name,
    (request: never, call: Call) => {
      admission.admitOperation(call.principal);
      return handle(request, call);
    },
  ]);
  return Object.fromEntries(wrapped) as Handlers<typeof TenantAdminService>;
}
