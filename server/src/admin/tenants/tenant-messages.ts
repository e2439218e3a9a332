import { create } from "@bufbuild/protobuf";
import { resolvePolicy } from "../../domain/policy.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { timestamp } from "../../domain/violations.ts";
import { type Tenant, Tenant_State, TenantSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { etagOf } from "../etags.ts";
import { BOUND_MESSAGES, POLICY_MESSAGES, QUOTA_MESSAGES } from "../policy-messages.ts";

/** Returns a tenant as its administrators and operators see it. */
export function tenantMessage(tenant: TenantResource): Tenant {
  return create(TenantSchema, {
    name: tenant.name,
    state: Tenant_State[tenant.state],
    policy: POLICY_MESSAGES.write(tenant.policy),
    effectivePolicy: POLICY_MESSAGES.write(resolvePolicy(tenant.policy)),
    policyBounds: BOUND_MESSAGES.write(tenant.bounds),
    quotas: QUOTA_MESSAGES.write(tenant.quotas),
    createdAt: timestamp(tenant.createdAtMs),
    etag: tenantEtag(tenant),
    movedTo: tenant.movedTo ?? "",
  });
}

/** Returns the etag of a tenant's state. It covers the id, so that no two tenants ever share one. */
export function tenantEtag({ id, version }: TenantResource): string {
  return etagOf(["tenant", id, version]);
}
