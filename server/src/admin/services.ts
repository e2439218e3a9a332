import type { Admission } from "../access/admission.ts";
import type { Handlers } from "../access/call.ts";
import { redactedConfig } from "../config/config.ts";
import type { CoreParts } from "../core-parts.ts";
import { OperatorService } from "../gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { createPageTokens } from "./pages.ts";

/** Returns the parts that RPCs of administration need. */
export function administrationParts(core: CoreParts) {
  const { config } = core;
  return {
    pool: core.administrationPool,
    admission: core.admission,
    records: core.records,
    databaseClock: core.databaseClock,
    pageTokens: createPageTokens(config.ONCEWARD_API_KEY_PEPPER, core.installationId),
    /** Receives every change, after its commit. */
    changes: core.authenticator,
    encryption: core.values,
    /** Keys the digests of API keys, and the hashes of records' keys in audit events. */
    pepper: config.ONCEWARD_API_KEY_PEPPER,
    /** Wakes the calls that wait for a record, on every replica. */
    onSettled: core.onSettled,
    /** The configuration without its secrets. */
    redactedConfig: redactedConfig(config),
    replicaState: core.replicaState,
  };
}

export type AdministrationParts = ReturnType<typeof administrationParts>;

type TenantAdmin = Handlers<typeof TenantAdminService>;
type Operator = Handlers<typeof OperatorService>;

/** The handlers of some RPCs of TenantAdminService. */
export type TenantAdminRpcs<Name extends keyof TenantAdmin> = Pick<TenantAdmin, Name>;

/** The handlers of some RPCs of OperatorService. */
export type OperatorRpcs<Name extends keyof Operator> = Pick<Operator, Name>;

/** Returns the routes of RPCs of TenantAdminService. A call beyond the tenant's quotas is refused before anything else is done. */
export function tenantAdminRoutes(
  admission: Pick<Admission, "admitOperation">,
  handlers: Partial<TenantAdmin>,
): readonly Route[] {
  return routesOf(TenantAdminService, handlers).map((route) => ({
    ...route,
    handle(request, call) {
      admission.admitOperation(call.principal);
      return route.handle(request, call);
    },
  }));
}

/** Returns the routes of RPCs of OperatorService. */
export function operatorRoutes(handlers: Partial<Operator>): readonly Route[] {
  return routesOf(OperatorService, handlers);
}
