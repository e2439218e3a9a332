import type { Admission } from "../../core/admission/admission.ts";
import type { Handlers } from "../../core/calls/call.ts";
import { redactedConfig } from "../../core/config/config.ts";
import type { CoreParts } from "../../core/feature.ts";
import { type Route, routesOf } from "../../core/transport/route.ts";
import { OperatorService } from "../../gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import type { OperatorOptions } from "./operator/options.ts";
import { createPageTokens, type PageTokens } from "./pages.ts";
import type { TenantAdminOptions } from "./tenant/options.ts";

/** Returns what the RPCs of TenantAdminService need. */
export function tenantAdminOptions(core: CoreParts): TenantAdminOptions {
  return {
    pool: core.administrationPool,
    admission: core.admission,
    records: core.records,
    databaseClock: core.databaseClock,
    pageTokens: pageTokensOf(core),
    changes: core.authenticator,
    encryption: core.values,
    pepper: core.config.ONCEWARD_API_KEY_PEPPER,
    onSettled: core.onSettled,
  };
}

/** Returns what the RPCs of OperatorService need. */
export function operatorOptions(core: CoreParts): OperatorOptions {
  return {
    pool: core.administrationPool,
    databaseClock: core.databaseClock,
    pageTokens: pageTokensOf(core),
    changes: core.authenticator,
    pepper: core.config.ONCEWARD_API_KEY_PEPPER,
    redactedConfig: redactedConfig(core.config),
    replicaState: core.replicaState,
  };
}

function pageTokensOf({ config, installationId }: CoreParts): PageTokens {
  return createPageTokens(config.ONCEWARD_API_KEY_PEPPER, installationId);
}

/** Returns the routes of RPCs of TenantAdminService. A call beyond the tenant's quotas is refused before anything else is done. */
export function tenantAdminRoutes(
  admission: Pick<Admission, "admitOperation">,
  handlers: Partial<Handlers<typeof TenantAdminService>>,
): readonly Route[] {
  return routesOf(TenantAdminService, "TENANT_ADMIN", handlers).map((route) => ({
    ...route,
    handle(request, call) {
      admission.admitOperation(call.principal);
      return route.handle(request, call);
    },
  }));
}

/** Returns the routes of RPCs of OperatorService. */
export function operatorRoutes(handlers: Partial<Handlers<typeof OperatorService>>): readonly Route[] {
  return routesOf(OperatorService, "OPERATOR", handlers);
}
