import { create } from "@bufbuild/protobuf";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { Refusal } from "../../domain/refusal.ts";
import { GetRecordJobResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { tenantAdmin } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { type RecordJob, recordJobMessage } from "./record-job.ts";
import { JOB_COLUMNS, type JobRow, parseJob } from "./record-jobs.ts";

/** Returns a background change of records, with its progress. */
export const getRecordJob: TenantRpc<"getRecordJob"> = async ({ id }, call, { pool }) => {
  const found = await findRecordJob(pool.of(call), tenantAdmin(call).tenant.id, id);
  return create(GetRecordJobResponseSchema, { job: recordJobMessage(visibleJob(found, call)) });
};

/** Returns a job that the caller may see. @throws Refusal RECORD_JOB_NOT_FOUND. */
export function visibleJob(job: RecordJob | undefined, call: Call): RecordJob {
  const isVisible = tenantAdmin(call).namespaces?.has(job?.namespace ?? "") !== false;
  if (job === undefined || !isVisible) {
    throw new Refusal("RECORD_JOB_NOT_FOUND", "The tenant has no such record job.");
  }
  return job;
}

const readJob = {
  name: "read_record_job",
  text: `select ${JOB_COLUMNS} from record_jobs j where j.tenant_id = $1::int and j.id = $2::bigint`,
};

/** Returns a tenant's job; undefined if the tenant has no such job. */
export async function findRecordJob(
  runner: Runner,
  tenantId: number,
  id: bigint,
): Promise<RecordJob | undefined> {
  const [row] = await runner.run<JobRow>(readJob, [tenantId, String(id)]);
  return row && parseJob(row);
}
