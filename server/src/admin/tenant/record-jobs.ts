import { create } from "@bufbuild/protobuf";
import type { Admission } from "../../admission/admission.ts";
import type { Handlers } from "../../calls/call.ts";
import type { RecordJob } from "../../domain/record-job.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import {
  GetRecordJobResponseSchema,
  ListRecordJobsResponseSchema,
  type TenantAdminService,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { RecordJobSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { Violations } from "../../messages/violations.ts";
import type { Runner } from "../../store/pool.ts";
import {
  countUnfinishedJobsOf,
  findRecordJob,
  insertRecordJob,
  listRecordJobs,
} from "../../store/tenants/record-jobs.ts";
import { pageSize, replyPage } from "../pages.ts";
import { recordJobMessage } from "../tenant-messages.ts";
import type { TenantAdminOptions } from "./options.ts";
import { administeredTenant } from "./own-tenant.ts";

/** Returns the RPCs for background changes of records. */
export function createRecordJobHandlers({
  pool,
  pageTokens,
}: TenantAdminOptions): Pick<Handlers<typeof TenantAdminService>, "getRecordJob" | "listRecordJobs"> {
  return {
    async getRecordJob({ id }, call) {
      const { principal } = call;
      if (principal.role === "OPERATOR") throw new Error("an operator reached a tenant's service");
      const { tenant, namespaces } = principal;
      const job = await findRecordJob(pool.of(call), tenant.id, id);
      const mayBeSeen = namespaces === undefined || namespaces.has(job?.namespace ?? "");
      if (job === undefined || !mayBeSeen) throw notFound();
      return create(GetRecordJobResponseSchema, { job: recordJobMessage(job) });
    },

    async listRecordJobs(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const scope = [own.id, "ListRecordJobs"];
      const limit = pageSize(request.pageSize, violations);
      const [beforeId] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const found = await listRecordJobs(pool.of(call), own.id, beforeId, limit + 1);
      const { messages, last } = replyPage(found, limit, RecordJobSchema, recordJobMessage);
      return create(ListRecordJobsResponseSchema, {
        jobs: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [String(last.id)]) }),
      });
    },
  };
}

/**
 * Creates a job for a tenant that the transaction has locked.
 *
 * @throws Refusal QUOTA_RECORD_JOBS if too many of the tenant's jobs are unfinished.
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

function notFound(): Refusal {
  return new Refusal("RECORD_JOB_NOT_FOUND", "The tenant has no such record job.");
}
