import { create } from "@bufbuild/protobuf";
import { POLICY_SETTLES_MS } from "../../../core/domain/statement-times.ts";
import { revokeApiKeys } from "../../../core/store/tenants/api-keys.ts";
import { updateTenant } from "../../../core/store/tenants/tenants.ts";
import { DeleteTenantResponseSchema } from "../../../gen/onceward/v1/operator_pb.ts";
import { insertRecordJob } from "../../jobs/store/record-jobs.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { checkEtag, tenantEtag, tenantMessage } from "../tenant-messages.ts";
import { checkNameAndReason, lockTenantByName } from "./tenant-requests.ts";

/** Returns the RPC that refuses a tenant's calls from now on, and deletes its records and then the tenant. */
export function createDeleteTenant({
  pool,
  changes,
  databaseClock,
}: AdministrationParts): OperatorRpcs<"deleteTenant"> {
  return {
    async deleteTenant(request, call) {
      checkNameAndReason(request);
      const tenant = await pool.transaction(async (transaction) => {
        const was = await lockTenantByName(transaction, request.name);
        // A repeated call has the etag from before the deletion.
        if (was.state === "DELETING") return was;
        checkEtag(request.etag, tenantEtag(was));
        await revokeApiKeys(transaction, was.id);
        // The job is delayed because the tenant can still claim until every replica refuses it.
        const job = await insertRecordJob(
          transaction,
          { tenantId: was.id, namespace: undefined, work: { kind: "DELETE" }, delayMs: POLICY_SETTLES_MS },
          databaseClock.latestMs(),
        );
        await recordChange(transaction, call, {
          action: "DeleteTenant",
          target: `tenant ${was.name}`,
          tenant: was,
          reason: request.reason,
          before: { state: was.state },
          after: { state: "DELETING", recordJob: String(job.id) },
        });
        return updateTenant(transaction, { ...was, state: "DELETING" });
      });
      changes.tenantChanged(tenant.id);
      return create(DeleteTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },
  };
}
