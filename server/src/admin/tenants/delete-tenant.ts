import { create } from "@bufbuild/protobuf";
import { updateTenant } from "../../database/tenants/tenants.ts";
import { POLICY_SETTLES_MS } from "../../domain/statement-times.ts";
import { DeleteTenantResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { checkEtag } from "../etags.ts";
import { insertRecordJob } from "../jobs/record-jobs.ts";
import type { OperatorRpc } from "../services.ts";
import { checkNameAndReason, lockTenantByName } from "./locked-tenant.ts";
import { tenantEtag, tenantMessage } from "./tenant-messages.ts";

/** Revokes all keys of a tenant. */
export const revokeApiKeys = {
  name: "revoke_api_keys",
  text: "update api_keys set revoked_at = now() where tenant_id = $1::int and revoked_at is null",
};

/** Refuses a tenant's calls from now on, and starts the job that deletes its records and then the tenant. */
export const deleteTenant: OperatorRpc<"deleteTenant"> = async (request, call, parts) => {
  const { pool, changes, databaseClock } = parts;
  checkNameAndReason(request);
  const { name, etag, reason } = request;
  const tenant = await pool.transaction(async (transaction) => {
    const was = await lockTenantByName(transaction, name);
    // A repeated call has the etag from before the deletion.
    if (was.state === "DELETING") return was;
    checkEtag(etag, tenantEtag(was));
    await transaction.run(revokeApiKeys, [was.id]);
    // The job is delayed because the tenant can still claim until every replica refuses it.
    const work = { kind: "DELETE" } as const;
    const deletion = { tenantId: was.id, namespace: undefined, work, delayMs: POLICY_SETTLES_MS };
    const job = await insertRecordJob(transaction, deletion, databaseClock.latestMs());
    await recordChange(transaction, call, {
      action: "DeleteTenant",
      target: `tenant ${was.name}`,
      tenant: was,
      reason,
      before: { state: was.state },
      after: { state: "DELETING", recordJob: String(job.id) },
    });
    return updateTenant(transaction, { ...was, state: "DELETING" });
  });
  changes.tenantChanged(tenant.id);
  return create(DeleteTenantResponseSchema, { tenant: tenantMessage(tenant) });
};
