import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { updateTenant as storeTenant } from "../../database/tenants/tenants.ts";
import { fieldsOf, type PolicyOverrides, resolvePolicy } from "../../domain/policy.ts";
import type { NamespaceResource, TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import { UpdateTenantResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { checkEtag } from "../etags.ts";
import {
  type RetentionChange,
  type RetentionChanges,
  recordJobMessage,
  retentionChange,
} from "../jobs/record-job.ts";
import { newRestamping } from "../jobs/record-jobs.ts";
import { retentionEffect } from "../jobs/retention-effect.ts";
import { listNamespaceResources } from "../namespaces/namespaces.ts";
import { administeredTenant, lockOwnTenant } from "../own-tenant.ts";
import { applyPolicyUpdate, parsePolicyUpdate } from "../policy-update.ts";
import type { TenantRpc } from "../services.ts";
import { tenantEtag, tenantMessage } from "./tenant-messages.ts";

/** Changes the tenant's policy with its audit event, or only returns what would change for `validate_only`. */
export const updateTenant: TenantRpc<"updateTenant"> = async (request, call, parts) => {
  const own = administeredTenant(call);
  const violations = new Violations();
  const update = parsePolicyUpdate(request.tenant?.policy, request.updateMask, violations);
  violations.throwIfAny();
  const runner = parts.pool.of(call);
  const { was, becomes, job } = await runner.transaction(async (transaction) => {
    const was = await lockOwnTenant(transaction, own);
    checkEtag(request.tenant?.etag ?? "", tenantEtag(was));
    const asked = { ...was, policy: applyPolicyUpdate(was.policy, [], update, was, call) };
    if (request.validateOnly) return { was, becomes: asked, job: undefined };

    const becomes = await storeTenant(transaction, asked);
    const job = request.applyToExisting
      ? await newRestamping(transaction, parts, was, undefined, await changesFrom(transaction, was, becomes))
      : undefined;
    await recordChange(transaction, call, {
      action: "UpdateTenant",
      target: `tenant ${own.name}`,
      before: fieldsOf(was.policy),
      after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
    });
    return { was, becomes, job };
  });
  parts.changes.tenantChanged(own.id);
  const effect = request.validateOnly
    ? await retentionEffect(runner, own.id, undefined, await changesFrom(runner, was, becomes), call)
    : undefined;
  const tenant = tenantMessage(becomes);
  return create(UpdateTenantResponseSchema, { tenant, effect, job: job && recordJobMessage(job) });
};

const PAGE_NAMESPACES = 1000;

/** Returns the change of retention of each namespace: of declared ones, and of all others. */
async function changesFrom(
  runner: Runner,
  was: TenantResource,
  becomes: TenantResource,
): Promise<RetentionChanges> {
  const changeOf = (...own: PolicyOverrides[]) =>
    retentionChange(resolvePolicy(was.policy, ...own), resolvePolicy(becomes.policy, ...own));
  const byNamespace: Record<string, RetentionChange> = {};
  let afterName: string | undefined = "";
  while (afterName !== undefined) {
    const page: readonly NamespaceResource[] = await listNamespaceResources(
      runner,
      was.id,
      afterName,
      PAGE_NAMESPACES,
    );
    for (const { name, policy } of page) byNamespace[name] = changeOf(policy);
    afterName = page.length === PAGE_NAMESPACES ? page.at(-1)?.name : undefined;
  }
  return { byNamespace, others: changeOf() };
}
