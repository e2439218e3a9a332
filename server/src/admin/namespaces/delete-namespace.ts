import { create } from "@bufbuild/protobuf";
import { fieldsOf } from "../../domain/policy.ts";
import { Refusal } from "../../domain/refusal.ts";
import { DeleteNamespaceResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { newRecordJob } from "../jobs/record-job-rpcs.ts";
import { mayHaveLiveRecords } from "../jobs/restamp-records.ts";
import { lockOwnTenant, namespaceNotFound, tenantOfNamespace } from "../own-tenant.ts";
import type { ForgetKeys } from "../records/forget-records.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { checkEtag, namespaceEtag, recordJobMessage } from "../tenants/tenant-messages.ts";
import { deleteNamespace, findNamespaceResource } from "./namespaces.ts";

/** Returns the RPC that deletes a namespace's policy, and forgets its records. */
export function createDeleteNamespace(
  parts: AdministrationParts,
  forgetKeys: ForgetKeys,
): TenantAdminRpcs<"deleteNamespace"> {
  return {
    async deleteNamespace({ name, etag, force }, call) {
      const own = tenantOfNamespace(name, "name", call);
      const runner = parts.pool.of(call);
      // Before the tenant's row is locked: rows that were deleted, but not vacuumed yet, are read, too. Claims take no lock either.
      const mayBeLive = await mayHaveLiveRecords(runner, own.id, name, parts.databaseClock.latestMs());
      const job = await runner.transaction(async (transaction) => {
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
        await forgetKeys(transaction, own.id, name);
        const forget = { namespace: name, work: { kind: "FORGET" }, delayMs: 0 } as const;
        const job = mayBeLive ? await newRecordJob(transaction, parts, tenant, forget) : undefined;
        await recordChange(transaction, call, {
          action: "DeleteNamespace",
          target: `namespace ${name}`,
          before: fieldsOf(was.policy),
          ...(job && { after: { recordJob: String(job.id) } }),
        });
        return job;
      });
      parts.changes.tenantChanged(own.id);
      return create(DeleteNamespaceResponseSchema, { job: job && recordJobMessage(job) });
    },
  };
}
