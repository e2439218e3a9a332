import type { CoreParts } from "../core-parts.ts";
import { IdentityService } from "../gen/onceward/v1/identity_pb.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { createListAllEvents, createListTenantsEvents } from "./audit/list-audit-events.ts";
import { createIdentityService } from "./identity.ts";
import { createRecordJobs } from "./jobs/record-job-rpcs.ts";
import { createOperatorsApiKeys, createTenantsApiKeys } from "./keys/api-keys.ts";
import { createDeleteNamespace } from "./namespaces/delete-namespace.ts";
import { createReadPolicies } from "./namespaces/read-policies.ts";
import { createUpdatePolicies } from "./namespaces/update-policies.ts";
import type { ForgetKeys } from "./records/forget-records.ts";
import { createListRecords } from "./records/list-records.ts";
import { createReadRecords } from "./records/read-records.ts";
import { createResolveRecords } from "./records/resolve-records.ts";
import { createServerInfoHandlers } from "./server-info.ts";
import { administrationParts, operatorRoutes, tenantAdminRoutes } from "./services.ts";
import { createTenantChanges, createTenants } from "./tenants/tenants.ts";

/**
 * Returns the RPCs that administer tenants, namespaces, API keys and records.
 *
 * @param forgetKeys forgets what features keep of a deleted namespace's keys.
 */
export function administrationRoutes(core: CoreParts, forgetKeys: ForgetKeys): readonly Route[] {
  const parts = administrationParts(core);
  return [
    ...routesOf(IdentityService, createIdentityService(core.config)),
    ...tenantAdminRoutes(core.admission, {
      ...createReadPolicies(parts),
      ...createUpdatePolicies(parts),
      ...createDeleteNamespace(parts, forgetKeys),
      ...createListRecords(parts),
      ...createReadRecords(parts),
      ...createResolveRecords(parts),
      ...createRecordJobs(parts),
      ...createTenantsApiKeys(parts),
      ...createListTenantsEvents(parts),
    }),
    ...operatorRoutes({
      ...createTenants(parts),
      ...createTenantChanges(parts),
      ...createOperatorsApiKeys(parts),
      ...createListAllEvents(parts),
      ...createServerInfoHandlers(parts),
    }),
  ];
}
