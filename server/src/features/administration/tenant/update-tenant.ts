import { create } from "@bufbuild/protobuf";
import { fieldsOf, resolvePolicy } from "../../../core/domain/policy.ts";
import { POLICY_SETTLES_MS } from "../../../core/domain/statement-times.ts";
import type { NamespaceResource, TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { updateTenant } from "../../../core/store/tenants/tenants.ts";
import { UpdateTenantResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { type RetentionChanges, retentionChange } from "../../jobs/record-job.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { listNamespaceResources } from "../store/namespaces.ts";
import { checkEtag, recordJobMessage, tenantEtag, tenantMessage } from "../tenant-messages.ts";
import { administeredTenant, lockOwnTenant } from "./own-tenant.ts";
import { applyPolicyUpdate, parsePolicyUpdate, retentionEffect } from "./policy-update.ts";
import { newRecordJob } from "./record-jobs.ts";

/** Returns the RPC that changes the tenant's policy. */
export function createUpdateTenant({
  pool,
  changes: listener,
  admission,
  databaseClock,
}: AdministrationParts): TenantAdminRpcs<"updateTenant"> {
  return {
    async updateTenant(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const update = parsePolicyUpdate(request.tenant?.policy, request.updateMask, violations);
      violations.throwIfAny();

      const { was, becomes, job } = await pool.of(call).transaction(async (transaction) => {
        const was = await lockOwnTenant(transaction, own);
        checkEtag(request.tenant?.etag ?? "", tenantEtag(was));
        const before = { was: was.policy, inherits: [] };
        const asked = { ...was, policy: applyPolicyUpdate(before, update, was, call) };
        if (request.validateOnly) return { was, becomes: asked, job: undefined };

        const becomes = await updateTenant(transaction, asked);
        const changes = request.applyToExisting && (await changesFrom(transaction, was, becomes));
        const job = changes
          ? await newRecordJob(transaction, { admission, databaseClock }, was, {
              namespace: undefined,
              work: { kind: "RESTAMP", changes },
              delayMs: POLICY_SETTLES_MS,
            })
          : undefined;
        await recordChange(transaction, call, {
          action: "UpdateTenant",
          target: `tenant ${own.name}`,
          before: fieldsOf(was.policy),
          after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
        });
        return { was, becomes, job };
      });
      listener.tenantChanged(own.id);
      const effect = request.validateOnly
        ? await retentionEffect(
            pool.of(call),
            {
              tenantId: own.id,
              namespace: undefined,
              changes: await changesFrom(pool.of(call), was, becomes),
            },
            call,
          )
        : undefined;
      return create(UpdateTenantResponseSchema, {
        tenant: tenantMessage(becomes),
        ...(effect && { effect }),
        ...(job && { job: recordJobMessage(job) }),
      });
    },
  };
}

/** Returns the change of retention of each namespace: of declared ones, and of all others. */
async function changesFrom(
  runner: Runner,
  was: TenantResource,
  becomes: TenantResource,
): Promise<RetentionChanges> {
  const byNamespace: Record<string, RetentionChanges["others"] & object> = {};
  for await (const { name, policy } of declaredNamespaces(runner, was.id)) {
    byNamespace[name] = retentionChange(
      resolvePolicy(was.policy, policy),
      resolvePolicy(becomes.policy, policy),
    );
  }
  return {
    byNamespace,
    others: retentionChange(resolvePolicy(was.policy), resolvePolicy(becomes.policy)),
  };
}

const PAGE_NAMESPACES = 1000;

async function* declaredNamespaces(runner: Runner, tenantId: number): AsyncIterable<NamespaceResource> {
  let afterName: string | undefined = "";
  while (afterName !== undefined) {
    const page: readonly NamespaceResource[] = await listNamespaceResources(
      runner,
      tenantId,
      afterName,
      PAGE_NAMESPACES,
    );
    yield* page;
    afterName = page.length === PAGE_NAMESPACES ? page.at(-1)?.name : undefined;
  }
}
