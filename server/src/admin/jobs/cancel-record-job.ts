import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import { CancelRecordJobResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { tenantAdmin } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { visibleJob } from "./get-record-job.ts";
import { type RecordJob, recordJobMessage } from "./record-job.ts";
import { JOB_COLUMNS, type JobRow, parseJob } from "./record-jobs.ts";

/** Ends a background change of records, unless it is finished. */
export const cancelRecordJob: TenantRpc<"cancelRecordJob"> = async ({ id }, call, { pool }) => {
  const job = await pool.of(call).transaction(async (transaction) => {
    const was = visibleJob(await lockJob(transaction, tenantAdmin(call).tenant.id, id), call);
    if (was.finishedAtMs !== undefined) return was;
    const became = await endJob(transaction, was.id);
    await recordChange(transaction, call, {
      action: "CancelRecordJob",
      target: `record job ${was.id}`,
      before: jobSnapshot(was),
      after: jobSnapshot(became),
    });
    return became;
  });
  return create(CancelRecordJobResponseSchema, { job: recordJobMessage(job) });
};

const lockJobRow = {
  name: "lock_record_job",
  text: `
select ${JOB_COLUMNS}
  from record_jobs j
 where j.tenant_id = $1::int
   and j.id = $2::bigint
   and j.kind <> 'DELETE'
   for update`,
};

/**
 * Locks a tenant's job until the transaction ends: a batch of the job that runs is waited for, and no other
 * one begins. Returns undefined if the tenant has no such job; the deletion of a tenant is not one of its jobs.
 */
async function lockJob(transaction: Runner, tenantId: number, id: bigint): Promise<RecordJob | undefined> {
  const [row] = await transaction.run<JobRow>(lockJobRow, [tenantId, String(id)]);
  return row && parseJob(row);
}

const cancelJob = {
  name: "cancel_record_job",
  text: `
update record_jobs j set
  cancelled = true,
  finished_at = now(),
  resolution = null
where j.id = $1::bigint
returning ${JOB_COLUMNS}`,
};

/** Ends an unfinished job that the transaction has locked. */
async function endJob(transaction: Runner, id: bigint): Promise<RecordJob> {
  const [row] = await transaction.run<JobRow>(cancelJob, [String(id)]);
  if (row === undefined) throw new Error("a locked job has disappeared");
  return parseJob(row);
}

function jobSnapshot({ state, work, namespace, recordsChanged }: RecordJob): Snapshot {
  return { kind: work.kind, ...(namespace !== undefined && { namespace }), state, recordsChanged };
}
