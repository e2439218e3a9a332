import { create } from "@bufbuild/protobuf";
import { fieldsOf } from "../../../core/domain/policy.ts";
import { boundsInForce } from "../../../core/domain/policy-bounds.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import { insertTenant } from "../../../core/store/tenants/tenants.ts";
import {
  type CreateTenantRequest,
  CreateTenantResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audited-change.ts";
import { checkBounds, parseLimits, parsePolicy } from "../policy-messages.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { tenantMessage } from "../tenant-messages.ts";
import { limitsSnapshot } from "./tenant-requests.ts";

/** Returns the RPC that creates a tenant. */
export function createCreateTenant({ pool }: AdministrationParts): OperatorRpcs<"createTenant"> {
  return {
    async createTenant(request, call) {
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
    },
  };
}

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
