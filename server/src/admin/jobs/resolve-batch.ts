import type { Runner } from "../../database/pool.ts";
import { insertAuditEvents } from "../../database/tenants/audit-events.ts";
import { withoutValues } from "../../records/engine/record-row.ts";
import type { RecordValues } from "../../records/engine/record-values.ts";
import type { RecordId } from "../../records/record.ts";
import { resultBytes } from "../../records/result-bytes.ts";
import { type AmbiguousCursor, BEFORE_ALL_AMBIGUOUS, findAmbiguous } from "../records/find-ambiguous.ts";
import { raiseCacheGeneration } from "../records/forget-records.ts";
import { lockRecord, resolveOneOfMany } from "../records/resolve-record.ts";
import type { JobProgress, TakenJob } from "./job-queue.ts";
import { readJobResolution } from "./job-resolution.ts";
import { matches, type ResolveWork, recordsLeftAlone } from "./record-job.ts";

/** Maximum records of a batch: each takes two statements, and is locked until the batch ends. */
const MAX_RESOLVED = 100;
/** Maximum bytes of results of a batch, so that a batch with large results is as short as others. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;

/**
 * Resolves the next matching records among `limit` ambiguous ones, the oldest first, each as ResolveRecord does, if it still
 * matches once it is locked. The last batch stores the audit event of the job's end.
 */
export async function resolveBatch(
  transaction: Runner,
  job: TakenJob,
  work: ResolveWork,
  { limit, encryption }: { readonly limit: number; readonly encryption: RecordValues },
): Promise<{ readonly progress: JobProgress; readonly settled: readonly RecordId[] }> {
  const { tenantId } = job;
  if (job.resolution === undefined) throw new Error(`record job ${job.id} has no resolution`);
  const resolution = readJobResolution(job.resolution, tenantId, encryption);
  const filter = { ...work.which, tenantId, namespace: job.namespace, keyPrefix: "" };
  const bytes = resolution.kind === "complete" ? resultBytes(resolution.result) : 0;
  const fitting = Math.max(1, Math.floor(MAX_RESULT_BYTES / Math.max(1, bytes)));
  const behind =
    job.after === undefined ? BEFORE_ALL_AMBIGUOUS : (JSON.parse(job.after.key) as AmbiguousCursor);
  const maxFound = Math.min(limit, MAX_RESOLVED, fitting);
  const { found, next } = await findAmbiguous(transaction, filter, behind, maxFound, undefined, limit);
  const settled: RecordId[] = [];
  for (const id of found.map(({ record }) => record.id).sort(byKey)) {
    const record = await lockRecord(transaction, id, withoutValues);
    if (record === undefined || !matches(record, work.which)) continue;
    const { reason } = work.audit;
    await resolveOneOfMany(
      transaction,
      { id, resolution, reason, recordJob: job.id, fencingToken: undefined },
      encryption,
    );
    settled.push(id);
  }
  const isForgetting = resolution.kind === "forget";
  if (isForgetting && settled.length > 0) await raiseCacheGeneration(transaction, tenantId);
  const progress = {
    after: next && { namespace: "", key: JSON.stringify(next) },
    examined: found.length,
    changed: settled.length,
    forgotten: isForgetting ? settled.length : 0,
    finished: next === undefined,
  };
  if (progress.finished) await recordEnd(transaction, job, work, job.recordsChanged + settled.length);
  return { progress, settled };
}

/** Compares by bytes, as Postgres does: every statement locks rows of records in this order. */
function byKey(a: RecordId, b: RecordId): number {
  return Buffer.compare(Buffer.from(`${a.namespace}\0${a.key}`), Buffer.from(`${b.namespace}\0${b.key}`));
}

/** Stores the audit event of a job's end, by the author of its start. */
async function recordEnd(
  transaction: Runner,
  { id, tenantId }: TakenJob,
  work: ResolveWork,
  recordsChanged: number,
): Promise<void> {
  const { tenantName, actor, requestId, target, reason } = work.audit;
  await insertAuditEvents(transaction, [
    {
      tenant: { id: tenantId, name: tenantName },
      actor,
      action: "ResolveAmbiguousRecords",
      target,
      reason,
      after: {
        recordJob: String(id),
        recordsChanged,
        recordsLeftAlone: recordsLeftAlone(work, recordsChanged),
      },
      requestId,
      calls: 1,
    },
  ]);
}
