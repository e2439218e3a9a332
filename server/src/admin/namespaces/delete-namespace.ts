import { create } from "@bufbuild/protobuf";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fieldsOf } from "../../domain/policy.ts";
import { Refusal } from "../../domain/refusal.ts";
import { DeleteNamespaceResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { STATE } from "../../records/engine/record-row.ts";
import { recordChange } from "../audit/audited-change.ts";
import { checkEtag } from "../etags.ts";
import { recordJobMessage } from "../jobs/record-job.ts";
import { newRecordJob } from "../jobs/record-jobs.ts";
import { lockOwnTenant, tenantOfNamespace } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { findNamespaceResource, namespaceEtag, namespaceNotFound } from "./namespaces.ts";

/** Deletes a namespace's policy, and forgets its records. */
export const deleteNamespace: TenantRpc<"deleteNamespace"> = async ({ name, etag, force }, call, parts) => {
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
    await transaction.run(deletePolicy, [own.id, name]);
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
  });
  parts.changes.tenantChanged(own.id);
  return create(DeleteNamespaceResponseSchema, { job: job && recordJobMessage(job) });
};

/** Rows that are examined for a live record: some milliseconds. */
export const MAX_EXAMINED_FOR_LIFE = 1000;

const findLiveRecord = {
  name: "find_live_record",
  text: `
with examined as materialized (
  select state <> ${STATE.forgotten} and expires_at > ${nowBy("$4")} as is_live
    from records
   where tenant_id = $1::int
     and namespace = $2::text
   order by key
   limit $3::int
)
select coalesce(bool_or(is_live), false) or count(*) = $3::int as may_have_live
  from examined`,
};

/**
 * Returns false if a namespace has no live record. Returns true if it has one among its first MAX_EXAMINED_FOR_LIFE rows, or
 * at least so many rows: those of ended records stay until the sweep deletes them.
 *
 * @param latestMs as DatabaseClock.
 */
export async function mayHaveLiveRecords(
  runner: Runner,
  tenantId: number,
  namespace: string,
  latestMs?: number,
): Promise<boolean> {
  const parameters = [tenantId, namespace, MAX_EXAMINED_FOR_LIFE, latestMs ?? null];
  const [row] = await runner.run<{ may_have_live: boolean }>(findLiveRecord, parameters);
  return row?.may_have_live === true;
}

/** Deletes the namespace's policy; its records follow the tenant's. */
const deletePolicy = {
  name: "delete_namespace",
  text: `delete from namespaces where tenant_id = $1::int and name = $2::text`,
};
