import { type RecordJob, RecordJob_Kind, RecordJob_State } from "@onceward/client/proto";
import { formatCount, formatNoun } from "./words.ts";

/** Returns what a job does, such as "Resolve ambiguous records". */
export function titleOf({ kind }: Pick<RecordJob, "kind">): string {
  switch (kind) {
    case RecordJob_Kind.RESTAMP:
      return "Apply a new retention";
    case RecordJob_Kind.FORGET:
      return "Forget a deleted namespace's records";
    case RecordJob_Kind.RESOLVE:
      return "Resolve ambiguous records";
    default:
      return "Change records";
  }
}

/** Returns whether a job can still change records. */
export function isUnfinished({ state }: Pick<RecordJob, "state">): boolean {
  return state === RecordJob_State.WAITING || state === RecordJob_State.RUNNING;
}

/** Returns a job's progress in words. */
export function progressOf(job: RecordJob): string {
  const { kind, recordsChanged, recordsExamined, recordsForgotten, recordsMatching, recordsLeftAlone } = job;
  if (job.state === RecordJob_State.WAITING) return "not started";
  if (kind === RecordJob_Kind.RESOLVE) {
    const leftAlone = recordsLeftAlone > 0n ? `, ${formatCount(recordsLeftAlone)} left alone` : "";
    return `${formatCount(recordsChanged)} of ${formatNoun(recordsMatching, "record", "records")} resolved${leftAlone}`;
  }
  const examined = formatNoun(recordsExamined, "record", "records");
  if (kind === RecordJob_Kind.FORGET) return `${formatCount(recordsChanged)} of ${examined} forgotten`;
  const forgotten =
    recordsForgotten > 0n ? `, ${formatCount(recordsForgotten)} of them forgotten at once` : "";
  return `${formatCount(recordsChanged)} of ${examined} changed${forgotten}`;
}
