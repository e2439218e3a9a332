import { type Feature, forgetKeysOf } from "../../core/feature.ts";
import { routesOf } from "../../core/transport/route.ts";
import { IdentityService } from "../../gen/onceward/v1/identity_pb.ts";
import { createOperatorsApiKeys, createTenantsApiKeys } from "./api-keys.ts";
import { operatorKey, tenantKey } from "./commands/api-keys.ts";
import { createIdentityService } from "./identity.ts";
import { createListAllEvents, createListTenantsEvents } from "./list-audit-events.ts";
import { createServerInfoHandlers } from "./operator/server-info.ts";
import { createTenantChanges, createTenants } from "./operator/tenants.ts";
import { administrationParts, operatorRoutes, tenantAdminRoutes } from "./services.ts";
import { createDeleteNamespace } from "./tenant/delete-namespace.ts";
import { createListRecords } from "./tenant/list-records.ts";
import { createReadPolicies } from "./tenant/read-policies.ts";
import { createReadRecords } from "./tenant/read-records.ts";
import { createRecordJobs } from "./tenant/record-jobs.ts";
import { createResolveRecords } from "./tenant/resolve-records.ts";
import { createUpdatePolicies } from "./tenant/update-policies.ts";

/** Administers tenants, namespaces, API keys and records. */
export const administration: Feature = {
  commands: [
    { name: "operator-key", summary: "create an operator's API key and print it", run: operatorKey },
    {
      name: "tenant-key",
      synopsis: "--tenant NAME [--role admin]",
      summary: "create a tenant's API key, and the tenant if needed, and print the key",
      run: tenantKey,
    },
  ],
  compose(core, earlier) {
    const parts = administrationParts(core);
    return {
      routes: [
        ...routesOf(IdentityService, createIdentityService(core.config)),
        ...tenantAdminRoutes(core.admission, {
          ...createReadPolicies(parts),
          ...createUpdatePolicies(parts),
          ...createDeleteNamespace(parts, forgetKeysOf(earlier)),
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
      ],
    };
  },
};
