import { create } from "@bufbuild/protobuf";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import {
  CancelRecordJobResponseSchema,
  GetRecordJobResponseSchema,
  ListRecordJobsResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { RecordJobSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { administeredTenant, tenantAdmin } from "../own-tenant.ts";
import { listPage } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { recordJobMessage } from "../tenants/tenant-messages.ts";
import type { RecordJob } from "./record-job.ts";
import {
  cancelRecordJob,
  countUnfinishedJobsOf,
  findRecordJob,
  insertRecordJob,
  listRecordJobs,
  lockRecordJob,
  type NewRecordJob,
} from "./record-jobs.ts";

/** Returns the RPCs for background changes of records. */
export function createRecordJobs({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"getRecordJob" | "listRecordJobs" | "cancelRecordJob"> {
  return {
    async getRecordJob({ id }, call) {
      const found = await findRecordJob(pool.of(call), tenantAdmin(call).tenant.id, id);
      return create(GetRecordJobResponseSchema, { job: recordJobMessage(visibleJob(found, call)) });
    },

    async cancelRecordJob({ id }, call) {
      const job = await pool.of(call).transaction(async (transaction) => {
        const was = visibleJob(await lockRecordJob(transaction, tenantAdmin(call).tenant.id, id), call);
        if (was.finishedAtMs !== undefined) return was;
        const became = await cancelRecordJob(transaction, was.id);
        await recordChange(transaction, call, {
          action: "CancelRecordJob",
          target: `record job ${was.id}`,
          before: jobSnapshot(was),
          after: jobSnapshot(became),
        });
        return became;
      });
      return create(CancelRecordJobResponseSchema, { job: recordJobMessage(job) });
    },

    async listRecordJobs(request, call) {
      const own = administeredTenant(call);
      const { messages, nextPageToken } = await listPage(request, {
        pageTokens,
        scope: [own.id, "ListRecordJobs"],
        schema: RecordJobSchema,
        find: ([beforeId], limit) => listRecordJobs(pool.of(call), own.id, beforeId, limit),
        messageOf: recordJobMessage,
        cursorOf: ({ id }) => [String(id)],
      });
      return create(ListRecordJobsResponseSchema, { jobs: messages, nextPageToken });
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
  { admission, databaseClock }: Pick<AdministrationParts, "admission" | "databaseClock">,
  tenant: TenantResource,
  job: Omit<NewRecordJob, "tenantId">,
): Promise<RecordJob> {
  admission.admitRecordJob(tenant, await countUnfinishedJobsOf(transaction, tenant.id));
  return insertRecordJob(transaction, { ...job, tenantId: tenant.id }, databaseClock.latestMs());
}

/** Returns a job that the caller may see. @throws Refusal RECORD_JOB_NOT_FOUND. */
function visibleJob(job: RecordJob | undefined, call: Call): RecordJob {
  const isVisible = tenantAdmin(call).namespaces?.has(job?.namespace ?? "") !== false;
  if (job === undefined || !isVisible) {
    throw new Refusal("RECORD_JOB_NOT_FOUND", "The tenant has no such record job.");
  }
  return job;
}

function jobSnapshot({ state, work, namespace, recordsChanged }: RecordJob): Snapshot {
  return { kind: work.kind, ...(namespace !== undefined && { namespace }), state, recordsChanged };
}
