import { create } from "@bufbuild/protobuf";
import { insertTenant } from "../../database/tenants/tenants.ts";
import { fieldsOf } from "../../domain/policy.ts";
import { boundsInForce } from "../../domain/policy-bounds.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import { type CreateTenantRequest, CreateTenantResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { parsePolicy } from "../policy-messages.ts";
import type { OperatorRpc } from "../services.ts";
import { checkBounds, limitsSnapshot, parseLimits } from "./limits.ts";
import { tenantMessage } from "./tenant-messages.ts";

/** Creates a tenant. */
export const createTenant: OperatorRpc<"createTenant"> = async (request, call, { pool }) => {
  const asked = parseNewTenant(request);
  const tenant = await pool.transaction(async (transaction) => {
    const made = await insertTenant(transaction, asked);
    if (made === undefined) {
      throw new Refusal(
        "TENANT_EXISTS",
        "A tenant of that name exists, or its records are still being removed.",
      );
    }
    await recordChange(transaction, call, {
      action: "CreateTenant",
      target: `tenant ${made.name}`,
      tenant: made,
      after: { policy: fieldsOf(made.policy), ...limitsSnapshot(made) },
    });
    return made;
  });
  return create(CreateTenantResponseSchema, { tenant: tenantMessage(tenant) });
};

/** Parses a request for a tenant. @throws Refusal INVALID_REQUEST with every violation. */
function parseNewTenant({
  tenant,
}: CreateTenantRequest): Pick<TenantResource, "name" | "policy" | "bounds" | "quotas"> {
  const violations = new Violations();
  const name = tenant?.name ?? "";
  violations.name("tenant.name", name);
  const limits = parseLimits(tenant ?? {}, violations);
  checkBounds(limits.bounds, violations);
  const policy = parsePolicy(tenant?.policy, boundsInForce(limits.bounds), violations);
  violations.throwIfAny();
  return { name, policy, ...limits };
}
