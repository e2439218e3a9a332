import { type RecordJob, RecordJob_Kind } from "@onceward/client/proto";

/**
 * Where the records that a job changed are listed: it changed `none`, or `forgotten` them all; `by-job`: those that it resolved and that
 * are still stored; `claimed-before`: among the records that were claimed before it began, which do not keep which job changed their
 * retention.
 */
export type ChangedRecords = "none" | "forgotten" | "by-job" | "claimed-before";

/** Returns where the records that a job changed are listed. */
export function changedRecordsOf({
  kind,
  recordsChanged,
  recordsForgotten,
}: Pick<RecordJob, "kind" | "recordsChanged" | "recordsForgotten">): ChangedRecords {
  if (recordsChanged === 0n) return "none";
  if (kind === RecordJob_Kind.FORGET || recordsForgotten === recordsChanged) return "forgotten";
  return kind === RecordJob_Kind.RESOLVE ? "by-job" : "claimed-before";
}
