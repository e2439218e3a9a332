import { create } from "@bufbuild/protobuf";
import type { Call, Handlers } from "../../../core/calls/call.ts";
import { NAMESPACE_PATTERN } from "../../../core/domain/limits.ts";
import { resolvePolicy } from "../../../core/domain/policy.ts";
import { MAX_DECLARED_NAMESPACES } from "../../../core/domain/quotas.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import { POLICY_SETTLES_MS } from "../../../core/domain/statement-times.ts";
import type { NamespaceResource, Tenant, TenantResource } from "../../../core/domain/tenant.ts";
import type { ForgetKeys } from "../../../core/feature.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  type DeleteNamespaceRequest,
  DeleteNamespaceResponseSchema,
  GetNamespaceResponseSchema,
  ListNamespacesResponseSchema,
  type TenantAdminService,
  type UpdateNamespaceRequest,
  UpdateNamespaceResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import type { RecordJob } from "../../jobs/record-job.ts";
import { type RetentionChanges, retentionChange } from "../../jobs/retention-change.ts";
import { mayHaveLiveRecords } from "../../jobs/store/restamp-records.ts";
import { recordChange } from "../audited-change.ts";
import { pageSize, replyPage } from "../pages.ts";
import {
  countNamespaces,
  deleteNamespace,
  findNamespaceResource,
  listNamespaceResources,
  putNamespace,
} from "../store/namespaces.ts";
import { checkEtag, namespaceEtag, namespaceMessage, recordJobMessage } from "../tenant-messages.ts";
import type { TenantAdminOptions } from "./options.ts";
import { administeredNamespace, administeredTenant, lockOwnTenant } from "./own-tenant.ts";
import { applyPolicyUpdate, type PolicyUpdate, parsePolicyUpdate, policySnapshot } from "./policy-update.ts";
import { newRecordJob } from "./record-jobs.ts";
import { retentionEffect } from "./retention-effect.ts";

interface NamespaceOptions extends TenantAdminOptions {
  readonly forgetKeys: ForgetKeys;
}

type Methods = "getNamespace" | "listNamespaces" | "updateNamespace" | "deleteNamespace";

/** Returns the RPCs for namespaces and their policies. */
export function createNamespaceHandlers({
  pool,
  pageTokens,
  changes: listener,
  admission,
  databaseClock,
  forgetKeys,
}: NamespaceOptions): Pick<Handlers<typeof TenantAdminService>, Methods> {
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
      // The tenant was just deleted, and its namespaces with it.
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
      const { tenant, becomes, changes, job } = await pool
        .of(call)
        .transaction((transaction) =>
          changePolicy(transaction, call, { admission, own, name, request, update }),
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

    async deleteNamespace(request, call) {
      const own = parseName(request.name, "name", call);
      const job = await pool
        .of(call)
        .transaction((transaction) =>
          removePolicy(transaction, call, { admission, databaseClock, forgetKeys, own, request }),
        );
      listener.tenantChanged(own.id);
      return create(DeleteNamespaceResponseSchema, job && { job: recordJobMessage(job) });
    },
  };
}

interface PolicyChange {
  readonly admission: TenantAdminOptions["admission"];
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
  { admission, own, name, request, update }: PolicyChange,
): Promise<ChangedPolicy> {
  const tenant = await lockOwnTenant(transaction, own);
  const was = await findNamespaceResource(transaction, own.id, name);
  if (was === undefined && !request.allowMissing) throw notFound();
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
    ? await newRecordJob(transaction, admission, tenant, {
        namespace: name,
        work: { kind: "RESTAMP", changes },
        delayMs: POLICY_SETTLES_MS,
      })
    : undefined;
  await recordChange(transaction, call, {
    action: "UpdateNamespace",
    target: `namespace ${name}`,
    ...(was && { before: policySnapshot(was.policy) }),
    after: { ...policySnapshot(becomes.policy), ...(job && { recordJob: String(job.id) }) },
  });
  return { tenant, becomes, changes, job };
}

/** Deletes a namespace's policy with its audit event. Returns the job that forgets the namespace's records, if it may have any. */
async function removePolicy(
  transaction: Runner,
  call: Call,
  {
    admission,
    databaseClock,
    forgetKeys,
    own,
    request: { name, etag, force },
  }: Pick<NamespaceOptions, "admission" | "databaseClock" | "forgetKeys"> & {
    readonly own: Tenant;
    readonly request: DeleteNamespaceRequest;
  },
): Promise<RecordJob | undefined> {
  const tenant = await lockOwnTenant(transaction, own);
  const was = await findNamespaceResource(transaction, own.id, name);
  if (was === undefined) throw notFound();
  checkEtag(etag, namespaceEtag(was));
  const mayBeLive = await mayHaveLiveRecords(transaction, own.id, name, databaseClock.latestMs());
  if (mayBeLive && !force) {
    throw new Refusal(
      "NAMESPACE_NOT_EMPTY",
      "The namespace has records, or rows that are not deleted yet; with force they are forgotten.",
    );
  }
  await deleteNamespace(transaction, own.id, name);
  await forgetKeys(transaction, own.id, name);
  const job = mayBeLive
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
}

/** Returns the caller's tenant, if the name is valid and the caller may administer the namespace. */
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
