import type { Admission } from "../../admission/admission.ts";
import type { RecordJob } from "../../domain/record-job.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import type { Runner } from "../../store/pool.ts";
import { countUnfinishedJobsOf, insertRecordJob } from "../../store/tenants/record-jobs.ts";

/**
 * Makes a job for a tenant that the transaction has locked.
 *
 * @throws Refusal QUOTA_RECORD_JOBS if too many of the tenant's are unfinished.
 */
export async function newRecordJob(
  transaction: Runner,
  admission: Pick<Admission, "admitRecordJob">,
  tenant: TenantResource,
  job: Pick<RecordJob, "namespace" | "work"> & { readonly delayMs: number },
): Promise<RecordJob> {
  admission.admitRecordJob(tenant, await countUnfinishedJobsOf(transaction, tenant.id));
  return insertRecordJob(transaction, { ...job, tenantId: tenant.id });
}
