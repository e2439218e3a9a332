import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { POLICY_COLUMNS, placeholders } from "../../database/tenants/policy-columns.ts";
import { fieldsOf, resolvePolicy } from "../../domain/policy.ts";
import { MAX_DECLARED_NAMESPACES } from "../../domain/quotas.ts";
import type { NamespaceResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import { UpdateNamespaceResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { checkEtag } from "../etags.ts";
import { recordJobMessage, retentionChange } from "../jobs/record-job.ts";
import { newRestamping } from "../jobs/record-jobs.ts";
import { retentionEffect } from "../jobs/retention-effect.ts";
import { lockOwnTenant, tenantOfNamespace } from "../own-tenant.ts";
import { applyPolicyUpdate, parsePolicyUpdate } from "../policy-update.ts";
import type { TenantRpc } from "../services.ts";
import {
  countNamespaces,
  findNamespaceResource,
  NAMESPACE_COLUMNS,
  type NamespaceRow,
  namespaceEtag,
  namespaceMessage,
  namespaceNotFound,
  parseNamespace,
} from "./namespaces.ts";

/** Declares a namespace or changes its policy, with its audit event; for `validate_only`, only returns what would change. */
export const updateNamespace: TenantRpc<"updateNamespace"> = async (request, call, parts) => {
  const name = request.namespace?.name ?? "";
  const violations = new Violations();
  const update = parsePolicyUpdate(request.namespace?.policy, request.updateMask, violations);
  const own = tenantOfNamespace(name, "namespace.name", call, violations);
  const runner = parts.pool.of(call);
  const { tenant, becomes, changes, job } = await runner.transaction(async (transaction) => {
    const tenant = await lockOwnTenant(transaction, own);
    const was = await findNamespaceResource(transaction, own.id, name);
    if (was === undefined && !request.allowMissing) throw namespaceNotFound();
    checkEtag(request.namespace?.etag ?? "", was && namespaceEtag(was));
    if (was === undefined) {
      const declared = await countNamespaces(transaction, own.id, MAX_DECLARED_NAMESPACES);
      parts.admission.admitNamespace(tenant, declared);
    }
    const before = was?.policy ?? {};
    const policy = applyPolicyUpdate(before, [tenant.policy], update, tenant, call);
    const change = retentionChange(
      resolvePolicy(tenant.policy, before),
      resolvePolicy(tenant.policy, policy),
    );
    const changes = { byNamespace: { [name]: change }, others: undefined };
    if (request.validateOnly) {
      const asked = was ?? { tenantId: own.id, name, createdAtMs: Date.now(), version: 0 };
      return { tenant, becomes: { ...asked, policy }, changes, job: undefined };
    }

    const becomes = await putNamespace(transaction, { tenantId: own.id, name, policy });
    const job = request.applyToExisting
      ? await newRestamping(transaction, parts, tenant, name, changes)
      : undefined;
    await recordChange(transaction, call, {
      action: "UpdateNamespace",
      target: `namespace ${name}`,
      ...(was && { before: fieldsOf(was.policy) }),
      after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
    });
    return { tenant, becomes, changes, job };
  });
  parts.changes.tenantChanged(own.id);
  const effect = request.validateOnly
    ? await retentionEffect(runner, own.id, name, changes, call)
    : undefined;
  const namespace = namespaceMessage(becomes, tenant);
  return create(UpdateNamespaceResponseSchema, { namespace, effect, job: job && recordJobMessage(job) });
};

const POLICY = POLICY_COLUMNS.names.join(", ");

const putNamespaceRow = {
  name: "put_namespace",
  text: `
insert into namespaces as n (tenant_id, name, ${POLICY})
values ($1::int, $2::text, ${placeholders(POLICY_COLUMNS.types, 3)})
on conflict (tenant_id, name) do update set
  (${POLICY}) = (${POLICY_COLUMNS.names.map((column) => `excluded.${column}`).join(", ")}),
  version = n.version + 1
returning ${NAMESPACE_COLUMNS}`,
};

/** Declares a namespace, or stores its new policy. The transaction has locked its tenant. */
async function putNamespace(
  transaction: Runner,
  { tenantId, name, policy }: Pick<NamespaceResource, "tenantId" | "name" | "policy">,
): Promise<NamespaceResource> {
  const parameters = [tenantId, name, ...POLICY_COLUMNS.parameters(policy)];
  const [row] = await transaction.run<NamespaceRow>(putNamespaceRow, parameters);
  if (row === undefined) throw new Error("a namespace was neither created nor changed");
  return parseNamespace(row);
}
