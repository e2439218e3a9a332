import { create } from "@bufbuild/protobuf";
import type { Call } from "../../../core/calls/call.ts";
import { fieldsOf, resolvePolicy } from "../../../core/domain/policy.ts";
import { MAX_DECLARED_NAMESPACES } from "../../../core/domain/quotas.ts";
import { POLICY_SETTLES_MS } from "../../../core/domain/statement-times.ts";
import type { NamespaceResource, Tenant, TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  type UpdateNamespaceRequest,
  UpdateNamespaceResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { type RecordJob, type RetentionChanges, retentionChange } from "../../jobs/record-job.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { countNamespaces, findNamespaceResource, putNamespace } from "../store/namespaces.ts";
import { checkEtag, namespaceEtag, namespaceMessage, recordJobMessage } from "../tenant-messages.ts";
import { lockOwnTenant, namespaceNotFound, tenantOfNamespace } from "./own-tenant.ts";
import { applyPolicyUpdate, type PolicyUpdate, parsePolicyUpdate, retentionEffect } from "./policy-update.ts";
import { newRecordJob } from "./record-jobs.ts";

/** Returns the RPC that declares a namespace, or changes its policy. */
export function createUpdateNamespace({
  pool,
  changes: listener,
  admission,
  databaseClock,
}: AdministrationParts): TenantAdminRpcs<"updateNamespace"> {
  return {
    async updateNamespace(request, call) {
      const name = request.namespace?.name ?? "";
      const violations = new Violations();
      const update = parsePolicyUpdate(request.namespace?.policy, request.updateMask, violations);
      const own = tenantOfNamespace(name, "namespace.name", call, violations);
      const { tenant, becomes, changes, job } = await pool
        .of(call)
        .transaction((transaction) =>
          changePolicy(transaction, call, { admission, databaseClock, own, name, request, update }),
        );
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
  };
}

interface PolicyChange extends Pick<AdministrationParts, "admission" | "databaseClock"> {
  readonly own: Tenant;
  readonly name: string;
  readonly request: UpdateNamespaceRequest;
  readonly update: PolicyUpdate;
}

/** The tenant, the namespace after the update, what the update changes in records, and the job that changes them. */
interface ChangedPolicy {
  readonly tenant: TenantResource;
  readonly becomes: NamespaceResource;
  readonly changes: RetentionChanges;
  readonly job: RecordJob | undefined;
}

/** Stores a namespace's new policy with its audit event, or only returns it for `validate_only`. */
async function changePolicy(
  transaction: Runner,
  call: Call,
  { admission, databaseClock, own, name, request, update }: PolicyChange,
): Promise<ChangedPolicy> {
  const tenant = await lockOwnTenant(transaction, own);
  const was = await findNamespaceResource(transaction, own.id, name);
  if (was === undefined && !request.allowMissing) throw namespaceNotFound();
  checkEtag(request.namespace?.etag ?? "", was && namespaceEtag(was));
  if (was === undefined) {
    const declared = await countNamespaces(transaction, own.id, MAX_DECLARED_NAMESPACES);
    admission.admitNamespace(tenant, declared);
  }
  const before = { was: was?.policy ?? {}, inherits: [tenant.policy] };
  const policy = applyPolicyUpdate(before, update, tenant, call);
  const change = retentionChange(
    resolvePolicy(tenant.policy, before.was),
    resolvePolicy(tenant.policy, policy),
  );
  const changes = { byNamespace: { [name]: change }, others: undefined };
  if (request.validateOnly) {
    const asked = was ?? { tenantId: own.id, name, createdAtMs: Date.now(), version: 0 };
    return { tenant, becomes: { ...asked, policy }, changes, job: undefined };
  }

  const becomes = await putNamespace(transaction, { tenantId: own.id, name, policy });
  const job = request.applyToExisting
    ? await newRecordJob(transaction, { admission, databaseClock }, tenant, {
        namespace: name,
        work: { kind: "RESTAMP", changes },
        delayMs: POLICY_SETTLES_MS,
      })
    : undefined;
  await recordChange(transaction, call, {
    action: "UpdateNamespace",
    target: `namespace ${name}`,
    ...(was && { before: fieldsOf(was.policy) }),
    after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
  });
  return { tenant, becomes, changes, job };
}
