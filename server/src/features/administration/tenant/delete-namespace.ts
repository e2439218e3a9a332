import { create } from "@bufbuild/protobuf";
import type { Call } from "../../../core/calls/call.ts";
import { fieldsOf } from "../../../core/domain/policy.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import type { Tenant } from "../../../core/domain/tenant.ts";
import type { ForgetKeys } from "../../../core/feature.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  type DeleteNamespaceRequest,
  DeleteNamespaceResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { RecordJob } from "../../jobs/record-job.ts";
import { mayHaveLiveRecords } from "../../jobs/store/restamp-records.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { deleteNamespace, findNamespaceResource } from "../store/namespaces.ts";
import { checkEtag, namespaceEtag, recordJobMessage } from "../tenant-messages.ts";
import { lockOwnTenant, namespaceNotFound, tenantOfNamespace } from "./own-tenant.ts";
import { newRecordJob } from "./record-jobs.ts";

/** What deletes a namespace. */
type Parts = AdministrationParts & { readonly forgetKeys: ForgetKeys };

/** Returns the RPC that deletes a namespace's policy, and forgets its records. */
export function createDeleteNamespace(parts: Parts): TenantAdminRpcs<"deleteNamespace"> {
  return {
    async deleteNamespace(request, call) {
      const own = tenantOfNamespace(request.name, "name", call);
      const runner = parts.pool.of(call);
      // Before the tenant's row is locked: rows that were deleted, but not vacuumed yet, are read, too. Claims take no lock either.
      const latestMs = parts.databaseClock.latestMs();
      const mayBeLive = await mayHaveLiveRecords(runner, own.id, request.name, latestMs);
      const job = await runner.transaction((transaction) =>
        removePolicy(transaction, call, parts, own, request, mayBeLive),
      );
      parts.changes.tenantChanged(own.id);
      return create(DeleteNamespaceResponseSchema, { job: job && recordJobMessage(job) });
    },
  };
}

/** Deletes a namespace's policy with its audit event. Returns the job that forgets the namespace's records, if it may have any. */
async function removePolicy(
  transaction: Runner,
  call: Call,
  parts: Parts,
  own: Tenant,
  { name, etag, force }: DeleteNamespaceRequest,
  mayBeLive: boolean,
): Promise<RecordJob | undefined> {
  const tenant = await lockOwnTenant(transaction, own);
  const was = await findNamespaceResource(transaction, own.id, name);
  if (was === undefined) throw namespaceNotFound();
  checkEtag(etag, namespaceEtag(was));
  if (mayBeLive && !force) {
    throw new Refusal(
      "NAMESPACE_NOT_EMPTY",
      "The namespace has records, or rows that are not deleted yet; with force they are forgotten.",
    );
  }
  await deleteNamespace(transaction, own.id, name);
  await parts.forgetKeys(transaction, own.id, name);
  const forget = { namespace: name, work: { kind: "FORGET" }, delayMs: 0 } as const;
  const job = mayBeLive ? await newRecordJob(transaction, parts, tenant, forget) : undefined;
  await recordChange(transaction, call, {
    action: "DeleteNamespace",
    target: `namespace ${name}`,
    before: fieldsOf(was.policy),
    ...(job && { after: { recordJob: String(job.id) } }),
  });
  return job;
}
