import type { Admission } from "../../core/admission/admission.ts";
import type { Handlers } from "../../core/calls/call.ts";
import { redactedConfig } from "../../core/config/config.ts";
import type { CoreParts } from "../../core/feature.ts";
import { type Route, routesOf } from "../../core/transport/route.ts";
import { OperatorService } from "../../gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { createPageTokens, type PageTokens } from "./pages.ts";

/** Returns the parts that the RPCs of TenantAdminService need. */
export function tenantAdminOptions(core: CoreParts) {
  return {
    pool: core.administrationPool,
    admission: core.admission,
    records: core.records,
    databaseClock: core.databaseClock,
    pageTokens: pageTokensOf(core),
    /** Receives every change, after its commit. */
    changes: core.authenticator,
    encryption: core.values,
    /** Keys the digests of API keys, and the hashes of records' keys in audit events. */
    pepper: core.config.ONCEWARD_API_KEY_PEPPER,
    /** Wakes the calls that wait for a record, on every replica. */
    onSettled: core.onSettled,
  };
}

export type TenantAdminOptions = ReturnType<typeof tenantAdminOptions>;

/** Returns the parts that the RPCs of OperatorService need. */
export function operatorOptions(core: CoreParts) {
  return {
    pool: core.administrationPool,
    databaseClock: core.databaseClock,
    pageTokens: pageTokensOf(core),
    /** Receives every change, after its commit. */
    changes: core.authenticator,
    /** Keys the digests of API keys. */
    pepper: core.config.ONCEWARD_API_KEY_PEPPER,
    /** The configuration without its secrets. */
    redactedConfig: redactedConfig(core.config),
    replicaState: core.replicaState,
  };
}

export type OperatorOptions = ReturnType<typeof operatorOptions>;

function pageTokensOf({ config, installationId }: CoreParts): PageTokens {
  return createPageTokens(config.ONCEWARD_API_KEY_PEPPER, installationId);
}

/** The handlers of some RPCs of TenantAdminService. */
export type TenantAdminRpcs<Name extends keyof Handlers<typeof TenantAdminService>> = Pick<
  Handlers<typeof TenantAdminService>,
  Name
>;

/** The handlers of some RPCs of OperatorService. */
export type OperatorRpcs<Name extends keyof Handlers<typeof OperatorService>> = Pick<
  Handlers<typeof OperatorService>,
  Name
>;

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
