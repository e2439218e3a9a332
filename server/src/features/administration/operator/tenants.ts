import { create } from "@bufbuild/protobuf";
import type { Call } from "../../../core/calls/call.ts";
import { fieldsOf } from "../../../core/domain/policy.ts";
import { boundsInForce } from "../../../core/domain/policy-bounds.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  findTenantResource,
  insertTenant,
  listTenantResources,
  updateTenant,
} from "../../../core/store/tenants/tenants.ts";
import {
  type CreateTenantRequest,
  CreateTenantResponseSchema,
  ListTenantsResponseSchema,
  OperatorServiceGetTenantResponseSchema,
  type UpdateTenantLimitsRequest,
  UpdateTenantLimitsResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { TenantSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import { recordChange } from "../audited-change.ts";
import { pageSize, replyPage } from "../pages.ts";
import {
  checkBounds,
  type Limits,
  maskedLimits,
  mergeLimits,
  parseLimits,
  parsePolicy,
} from "../policy-messages.ts";
import type { OperatorOptions, OperatorRpcs } from "../services.ts";
import { checkEtag, tenantEtag, tenantMessage } from "../tenant-messages.ts";
import { checkName, limitsSnapshot, lockChangeableTenant, tenantNotFound } from "./tenant-requests.ts";

/** Returns the RPCs that create tenants, return them, and set their limits. */
export function createTenantsHandlers({
  pool,
  pageTokens,
  changes,
}: OperatorOptions): OperatorRpcs<"createTenant" | "getTenant" | "listTenants" | "updateTenantLimits"> {
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

    async getTenant({ name }) {
      const violations = new Violations();
      checkName("name", name, violations);
      violations.throwIfAny();
      const tenant = await findTenantResource(pool, name);
      if (tenant === undefined) throw tenantNotFound();
      return create(OperatorServiceGetTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },

    async listTenants(request) {
      const violations = new Violations();
      const scope = ["ListTenants"];
      const size = pageSize(request.pageSize, violations);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const found = await listTenantResources(pool, afterName, size + 1);
      const { messages, last } = replyPage(found, size, TenantSchema, tenantMessage);
      return create(ListTenantsResponseSchema, {
        tenants: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.name]) }),
      });
    },

    async updateTenantLimits(request, call) {
      const violations = new Violations();
      checkName("name", request.name, violations);
      const asked = parseLimits(request, violations);
      const masked = maskedLimits(request.updateMask, request, violations);
      violations.throwIfAny();

      const tenant = await pool.transaction((transaction) =>
        changeLimits(transaction, call, request, (was) => mergeLimits(was, asked, masked)),
      );
      changes.tenantChanged(tenant.id);
      return create(UpdateTenantLimitsResponseSchema, { tenant: tenantMessage(tenant) });
    },
  };
}

/** Parses a request for a tenant. @throws Refusal INVALID_REQUEST with every violation. */
function parseNewTenant({
  tenant,
}: CreateTenantRequest): Pick<TenantResource, "name" | "policy" | "bounds" | "quotas"> {
  const violations = new Violations();
  const name = tenant?.name ?? "";
  checkName("tenant.name", name, violations);
  const limits = parseLimits(tenant ?? {}, violations);
  checkBounds(limits.bounds, violations);
  const policy = parsePolicy(tenant?.policy, boundsInForce(limits.bounds), violations);
  violations.throwIfAny();
  return { name, policy, ...limits };
}

/** Stores a tenant's new limits with their audit event, or only returns them for `validate_only`. */
async function changeLimits(
  transaction: Runner,
  call: Call,
  request: UpdateTenantLimitsRequest,
  merge: (was: TenantResource) => Limits,
): Promise<TenantResource> {
  const was = await lockChangeableTenant(transaction, request.name);
  checkEtag(request.etag, tenantEtag(was));
  const becomes = { ...was, ...merge(was) };
  const violations = new Violations();
  checkBounds(becomes.bounds, violations);
  violations.throwIfAny();
  if (request.validateOnly) return becomes;

  await recordChange(transaction, call, {
    action: "UpdateTenantLimits",
    target: `tenant ${was.name}`,
    tenant: was,
    before: limitsSnapshot(was),
    after: limitsSnapshot(becomes),
  });
  return updateTenant(transaction, becomes);
}
