import { create } from "@bufbuild/protobuf";
import type { Call, Handlers } from "../../calls/call.ts";
import { NAMESPACE_PATTERN } from "../../domain/limits.ts";
import { resolvePolicy } from "../../domain/policy.ts";
import { MAX_DECLARED_NAMESPACES } from "../../domain/quotas.ts";
import { POLICY_SETTLES_MS, type RecordJob } from "../../domain/record-job.ts";
import { Refusal } from "../../domain/refusal.ts";
import { retentionChange } from "../../domain/retention-change.ts";
import {
  DeleteNamespaceResponseSchema,
  GetNamespaceResponseSchema,
  ListNamespacesResponseSchema,
  type TenantAdminService,
  UpdateNamespaceResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { Violations } from "../../messages/violations.ts";
import { hasLiveRecords } from "../../store/records/restamp-records.ts";
import {
  countNamespaces,
  deleteNamespace,
  findNamespaceResource,
  listNamespaceResources,
  putNamespace,
} from "../../store/tenants/namespaces.ts";
import { findTenantResource } from "../../store/tenants/tenants.ts";
import { recordChange } from "../audited-change.ts";
import { pageSize, replyPage } from "../pages.ts";
import { checkEtag, namespaceEtag, namespaceMessage, recordJobMessage } from "../tenant-messages.ts";
import { newRecordJob } from "./new-record-job.ts";
import { administeredNamespace, administeredTenant, lockOwnTenant } from "./own-tenant.ts";
import { applyPolicyUpdate, parsePolicyUpdate, policySnapshot } from "./policy-update.ts";
import { retentionEffect } from "./retention-effect.ts";
import type { TenantAdminOptions } from "./service.ts";

type Methods = "getNamespace" | "listNamespaces" | "updateNamespace" | "deleteNamespace";

/** The RPCs about a namespace's policy. */
export function createNamespaceHandlers({
  pool,
  pageTokens,
  changes: listener,
  admission,
}: TenantAdminOptions): Pick<Handlers<typeof TenantAdminService>, Methods> {
  return {
    async getNamespace({ name }, call) {
      const own = parseName(name, "name", call);
      const tenant = await findTenantResource(pool.of(call), own.id);
      const namespace = await findNamespaceResource(pool.of(call), own.id, name);
      if (tenant === undefined || namespace === undefined) throw notFound();
      return create(GetNamespaceResponseSchema, { namespace: namespaceMessage(namespace, tenant) });
    },

    async listNamespaces(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const scope = [own.id, "ListNamespaces"];
      const limit = pageSize(request.pageSize, violations);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const tenant = await findTenantResource(pool.of(call), own.id);
      // It was deleted a moment ago, and its namespaces with it.
      if (tenant === undefined) return create(ListNamespacesResponseSchema);
      const found = await listNamespaceResources(pool.of(call), own.id, afterName, limit + 1);
      const { messages, last } = replyPage(found, limit, NamespaceSchema, (namespace) =>
        namespaceMessage(namespace, tenant),
      );
      return create(ListNamespacesResponseSchema, {
        namespaces: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.name]) }),
      });
    },

    async updateNamespace(request, call) {
      const name = request.namespace?.name ?? "";
      const violations = new Violations();
      const update = parsePolicyUpdate(request.namespace?.policy, request.updateMask, violations);
      const own = parseName(name, "namespace.name", call, violations);

      const { tenant, becomes, change, job } = await pool.of(call).transaction(async (transaction) => {
        const tenant = await lockOwnTenant(transaction, own);
        const was = await findNamespaceResource(transaction, own.id, name);
        if (was === undefined && !request.allowMissing) throw notFound();
        checkEtag(request.namespace?.etag ?? "", was && namespaceEtag(was));
        if (was === undefined) {
          const declared = await countNamespaces(transaction, own.id, MAX_DECLARED_NAMESPACES);
          admission.admitNamespace(tenant, declared);
        }
        const policy = applyPolicyUpdate(was?.policy ?? {}, update, tenant);
        const change = retentionChange(
          resolvePolicy(tenant.policy, was?.policy ?? {}),
          resolvePolicy(tenant.policy, policy),
        );
        if (request.validateOnly) {
          const asked = was ?? { tenantId: own.id, name, createdAtMs: Date.now(), version: 0 };
          return { tenant, becomes: { ...asked, policy }, change, job: undefined };
        }

        const becomes = await putNamespace(transaction, { tenantId: own.id, name, policy });
        const job = request.applyToExisting
          ? await newRecordJob(transaction, admission, tenant, {
              namespace: name,
              work: { kind: "RESTAMP", changes: { byNamespace: { [name]: change }, others: undefined } },
              delayMs: POLICY_SETTLES_MS,
            })
          : undefined;
        await recordChange(transaction, call, {
          action: "UpdateNamespace",
          target: `namespace ${name}`,
          ...(was && { before: policySnapshot(was.policy) }),
          after: { ...policySnapshot(becomes.policy), ...(job && { recordJob: String(job.id) }) },
        });
        return { tenant, becomes, change, job };
      });
      const changes = { byNamespace: { [name]: change }, others: undefined };
      listener.tenantChanged(own.id);
      const effect = request.validateOnly
        ? await retentionEffect(pool.of(call), { tenantId: own.id, namespace: name, changes }, call)
        : undefined;
      return create(UpdateNamespaceResponseSchema, {
        namespace: namespaceMessage(becomes, tenant),
        ...(effect && { effect }),
        ...(job && { job: recordJobMessage(job) }),
      });
    },

    async deleteNamespace({ name, etag, force }, call) {
      const own = parseName(name, "name", call);
      const job = await pool.of(call).transaction(async (transaction): Promise<RecordJob | undefined> => {
        const tenant = await lockOwnTenant(transaction, own);
        const was = await findNamespaceResource(transaction, own.id, name);
        if (was === undefined) throw notFound();
        checkEtag(etag, namespaceEtag(was));
        const isLive = await hasLiveRecords(transaction, own.id, name);
        if (isLive && !force) {
          throw new Refusal(
            "NAMESPACE_NOT_EMPTY",
            "Records live in the namespace; with force they are forgotten.",
          );
        }
        await deleteNamespace(transaction, own.id, name);
        const job = isLive
          ? await newRecordJob(transaction, admission, tenant, {
              namespace: name,
              work: { kind: "FORGET" },
              delayMs: 0,
            })
          : undefined;
        await recordChange(transaction, call, {
          action: "DeleteNamespace",
          target: `namespace ${name}`,
          before: policySnapshot(was.policy),
          ...(job && { after: { recordJob: String(job.id) } }),
        });
        return job;
      });
      listener.tenantChanged(own.id);
      return create(DeleteNamespaceResponseSchema, job && { job: recordJobMessage(job) });
    },
  };
}

/** The caller's tenant, if the name can be a namespace's and the caller may administer it. */
function parseName(name: string, field: string, call: Call, violations = new Violations()) {
  if (!NAMESPACE_PATTERN.test(name)) violations.add(field, `must match ${NAMESPACE_PATTERN.source}`);
  violations.throwIfAny();
  return administeredNamespace(call, name);
}

function notFound(): Refusal {
  return new Refusal(
    "NAMESPACE_NOT_FOUND",
    "The namespace was never declared; it follows the tenant's policy.",
  );
}
