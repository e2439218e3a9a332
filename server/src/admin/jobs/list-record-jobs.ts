import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { ListRecordJobsResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { RecordJobSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredTenant } from "../own-tenant.ts";
import { listPage } from "../pages.ts";
import type { TenantRpc } from "../services.ts";
import { type RecordJob, recordJobMessage } from "./record-job.ts";
import { JOB_COLUMNS, type JobRow, parseJob } from "./record-jobs.ts";

/** Returns a page of the tenant's background changes of records, newest first. */
export const listRecordJobs: TenantRpc<"listRecordJobs"> = async (request, call, { pool, pageTokens }) => {
  const own = administeredTenant(call);
  const { messages, nextPageToken } = await listPage(request, {
    pageTokens,
    scope: [own.id, "ListRecordJobs"],
    schema: RecordJobSchema,
    find: ([beforeId], limit) => findRecordJobs(pool.of(call), own.id, beforeId, limit),
    messageOf: recordJobMessage,
    cursorOf: ({ id }) => [String(id)],
  });
  return create(ListRecordJobsResponseSchema, { jobs: messages, nextPageToken });
};

const listJobs = {
  name: "list_record_jobs",
  text: `
select ${JOB_COLUMNS}
  from record_jobs j
 where j.tenant_id = $1::int
   and ($2::bigint is null or j.id < $2::bigint)
 order by j.id desc
 limit $3::int`,
};

/** Returns at most `limit` of a tenant's jobs, newest first, whose ids are below `beforeId`. */
export async function findRecordJobs(
  runner: Runner,
  tenantId: number,
  beforeId: string | undefined,
  limit: number,
): Promise<readonly RecordJob[]> {
  return (await runner.run<JobRow>(listJobs, [tenantId, beforeId ?? null, limit])).map(parseJob);
}
