import { type Feature, forgetKeysOf } from "../../core/feature.ts";
import { routesOf } from "../../core/transport/route.ts";
import { IdentityService } from "../../gen/onceward/v1/identity_pb.ts";
import { operatorKey, tenantKey } from "./commands/api-keys.ts";
import { createCreateApiKey, createCreateKeysAsOperator } from "./create-api-key.ts";
import { createIdentityService } from "./identity.ts";
import { createListApiKeys, createListOperatorApiKeys } from "./list-api-keys.ts";
import { createServerInfoHandlers } from "./operator/server-info.ts";
import { createTenantStateHandlers } from "./operator/tenant-states.ts";
import { createTenantsHandlers } from "./operator/tenants.ts";
import { createRevokeApiKey, createRevokeOperatorApiKey } from "./revoke-api-key.ts";
import { operatorOptions, operatorRoutes, tenantAdminOptions, tenantAdminRoutes } from "./services.ts";
import { createDeleteNamespace } from "./tenant/delete-namespace.ts";
import { createHistoryHandlers } from "./tenant/history.ts";
import { createListRecords } from "./tenant/list-records.ts";
import { createNamespaceHandlers } from "./tenant/namespaces.ts";
import { createRecordCountHandlers } from "./tenant/record-counts.ts";
import { createRecordJobHandlers } from "./tenant/record-jobs.ts";
import { createRecordHandlers } from "./tenant/records.ts";
import { createResolveAmbiguousHandlers } from "./tenant/resolve-ambiguous.ts";
import { createTenantHandlers } from "./tenant/tenant.ts";
import { createUpdateNamespace } from "./tenant/update-namespace.ts";

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
    const options = tenantAdminOptions(core);
    const ofOperators = operatorOptions(core);
    return {
      routes: [
        ...routesOf(IdentityService, undefined, createIdentityService()),
        ...tenantAdminRoutes(core.admission, {
          ...createTenantHandlers(options),
          ...createNamespaceHandlers(options),
          ...createUpdateNamespace(options),
          ...createDeleteNamespace({ ...options, forgetKeys: forgetKeysOf(earlier) }),
          ...createListRecords(options),
          ...createRecordHandlers(options),
          ...createRecordCountHandlers(options),
          ...createResolveAmbiguousHandlers(options),
          ...createRecordJobHandlers(options),
          ...createCreateApiKey(options),
          ...createListApiKeys(options),
          ...createRevokeApiKey(options),
          ...createHistoryHandlers(options),
        }),
        ...operatorRoutes({
          ...createTenantsHandlers(ofOperators),
          ...createTenantStateHandlers(ofOperators),
          ...createCreateKeysAsOperator(ofOperators),
          ...createListOperatorApiKeys(ofOperators),
          ...createRevokeOperatorApiKey(ofOperators),
          ...createServerInfoHandlers(ofOperators),
        }),
      ],
    };
  },
};
