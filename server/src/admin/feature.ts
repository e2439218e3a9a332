import { IdentityService } from "../gen/onceward/v1/identity_pb.ts";
import { type Feature, forgetKeysOf } from "../replica/feature.ts";
import { routesOf } from "../transport/route.ts";
import { createListAllEvents, createListTenantsEvents } from "./audit/list-audit-events.ts";
import { createIdentityService } from "./identity.ts";
import { createRecordJobs } from "./jobs/record-job-rpcs.ts";
import { createOperatorsApiKeys, createTenantsApiKeys } from "./keys/api-keys.ts";
import { operatorKey, tenantKey } from "./keys/commands.ts";
import { createDeleteNamespace } from "./namespaces/delete-namespace.ts";
import { createReadPolicies } from "./namespaces/read-policies.ts";
import { createUpdatePolicies } from "./namespaces/update-policies.ts";
import { createListRecords } from "./records/list-records.ts";
import { createReadRecords } from "./records/read-records.ts";
import { createResolveRecords } from "./records/resolve-records.ts";
import { createServerInfoHandlers } from "./server-info.ts";
import { administrationParts, operatorRoutes, tenantAdminRoutes } from "./services.ts";
import { createTenantChanges, createTenants } from "./tenants/tenants.ts";

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
