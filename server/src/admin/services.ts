import type { Call, Handlers } from "../access/call.ts";
import { redactedConfig } from "../config/config.ts";
import type { CoreParts } from "../core-parts.ts";
import { createRecordTarget } from "../domain/record-target.ts";
import { OperatorService } from "../gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { createPageTokens } from "./pages.ts";

/** Returns the parts that RPCs of administration need. */
function administrationParts(core: CoreParts) {
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
    /** Keys the digests of API keys, and the hashes of records' keys. */
    pepper: config.ONCEWARD_API_KEY_PEPPER,
    recordTarget: createRecordTarget(config.ONCEWARD_API_KEY_PEPPER),
    forgetKeys: core.forgetKeys,
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

/** Handles an RPC, with the parts that RPCs of administration need. */
type Command<Service, Name extends keyof Service> = Service[Name] extends (
  request: infer Request,
  call: Call,
) => infer Reply
  ? (request: Request, call: Call, parts: AdministrationParts) => Reply
  : never;

/** Handles an RPC of TenantAdminService. */
export type TenantRpc<Name extends keyof TenantAdmin> = Command<TenantAdmin, Name>;

/** Handles an RPC of OperatorService. */
export type OperatorRpc<Name extends keyof Operator> = Command<Operator, Name>;

/** Commands by the names of their RPCs. */
type Commands<Service> = { readonly [Name in keyof Service]?: Command<Service, Name> };

/** Returns the routes of RPCs of TenantAdminService. A call beyond the tenant's quotas is refused before anything else is done. */
export function tenantAdminRoutes(core: CoreParts, commands: Commands<TenantAdmin>): readonly Route[] {
  return routesOf(TenantAdminService, handlersOf(core, commands)).map((route) => ({
    ...route,
    handle(request, call) {
      core.admission.admitOperation(call.principal);
      return route.handle(request, call);
    },
  }));
}

/** Returns the routes of RPCs of OperatorService. */
export function operatorRoutes(core: CoreParts, commands: Commands<Operator>): readonly Route[] {
  return routesOf(OperatorService, handlersOf(core, commands));
}

function handlersOf(core: CoreParts, commands: object) {
  const parts = administrationParts(core);
  const handlers = Object.entries(commands).map(([name, command]) => [
    name,
    (request: unknown, call: Call) => command(request, call, parts),
  ]);
  return Object.fromEntries(handlers);
}
