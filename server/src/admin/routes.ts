import type { CoreParts } from "../core-parts.ts";
import { IdentityService } from "../gen/onceward/v1/identity_pb.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { listAllAuditEvents, listAuditEvents } from "./audit/list-audit-events.ts";
import { createIdentityService } from "./identity.ts";
import { cancelRecordJob } from "./jobs/cancel-record-job.ts";
import { getRecordJob } from "./jobs/get-record-job.ts";
import { listRecordJobs } from "./jobs/list-record-jobs.ts";
import { createApiKey, createOperatorApiKey, createTenantApiKey } from "./keys/create-api-key.ts";
import { listApiKeys, listOperatorApiKeys } from "./keys/list-api-keys.ts";
import { revokeApiKey, revokeOperatorApiKey } from "./keys/revoke-api-key.ts";
import { deleteNamespace } from "./namespaces/delete-namespace.ts";
import { getNamespace } from "./namespaces/get-namespace.ts";
import { listNamespaces } from "./namespaces/list-namespaces.ts";
import { listUndeclaredNamespaces } from "./namespaces/list-undeclared-namespaces.ts";
import { updateNamespace } from "./namespaces/update-namespace.ts";
import { countAmbiguousRecords } from "./records/count-ambiguous-records.ts";
import { countRecords } from "./records/count-records.ts";
import { getRecord } from "./records/get-record.ts";
import { listRecords } from "./records/list-records.ts";
import { resolveAmbiguousRecords } from "./records/resolve-ambiguous-records.ts";
import { resolveRecord } from "./records/resolve-record.ts";
import { getServerInfo } from "./replicas/get-server-info.ts";
import { listReplicas } from "./replicas/list-replicas.ts";
import { operatorRoutes, tenantAdminRoutes } from "./services.ts";
import { createTenant } from "./tenants/create-tenant.ts";
import { deleteTenant } from "./tenants/delete-tenant.ts";
import { getAnyTenant, getTenant } from "./tenants/get-tenant.ts";
import { listTenants } from "./tenants/list-tenants.ts";
import { redirectTenant, resumeTenant, suspendTenant } from "./tenants/suspend-tenant.ts";
import { updateTenant } from "./tenants/update-tenant.ts";
import { updateTenantLimits } from "./tenants/update-tenant-limits.ts";
import { getUsage } from "./usage/get-usage.ts";
import { getUsageNow } from "./usage/get-usage-now.ts";
import { listTenantUsage } from "./usage/list-tenant-usage.ts";

/** Returns the RPCs that administer tenants, namespaces, API keys and records, and show their use. */
export function administrationRoutes(core: CoreParts): readonly Route[] {
  return [
    ...routesOf(IdentityService, createIdentityService(core.config)),
    ...tenantAdminRoutes(core, {
      ...{ getTenant, updateTenant, listAuditEvents },
      ...{ getNamespace, listNamespaces, listUndeclaredNamespaces, updateNamespace, deleteNamespace },
      ...{ getRecord, listRecords, countRecords, resolveRecord },
      ...{ countAmbiguousRecords, resolveAmbiguousRecords },
      ...{ getRecordJob, listRecordJobs, cancelRecordJob },
      ...{ createApiKey, listApiKeys, revokeApiKey, getUsage, getUsageNow },
    }),
    ...operatorRoutes(core, {
      ...{ getTenant: getAnyTenant, listTenants, createTenant, updateTenantLimits },
      ...{ suspendTenant, resumeTenant, redirectTenant, deleteTenant },
      ...{ createTenantApiKey, createOperatorApiKey, listOperatorApiKeys, revokeOperatorApiKey },
      ...{ listAuditEvents: listAllAuditEvents, getServerInfo, listReplicas, listTenantUsage },
    }),
  ];
}
