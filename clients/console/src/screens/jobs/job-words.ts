import { type RecordJob, RecordJob_Kind, RecordJob_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import type { Mark } from "../../parts/state-mark.tsx";

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

/** Returns a job's state, for StateMark. */
export function stateOf({ state }: Pick<RecordJob, "state">): Mark {
  switch (state) {
    case RecordJob_State.WAITING:
      return { tone: "quiet", word: "waiting" };
    case RecordJob_State.RUNNING:
      return { tone: "busy", word: "running" };
    case RecordJob_State.DONE:
      return { tone: "good", word: "done" };
    case RecordJob_State.CANCELLED:
      return { tone: "bad", word: "cancelled" };
    default:
      return { tone: "quiet", word: "unknown" };
  }
}

/** Returns whether a job can still change records. */
export function isUnfinished({ state }: Pick<RecordJob, "state">): boolean {
  return state === RecordJob_State.WAITING || state === RecordJob_State.RUNNING;
}

/**
 * Returns the part of a job that is done, from 0 to 1; undefined if it is unknown: only jobs that resolve know how many
 * records they have before them.
 */
export function shareOf({ state, kind, recordsExamined, recordsMatching }: RecordJob): number | undefined {
  if (state === RecordJob_State.DONE) return 1;
  if (kind !== RecordJob_Kind.RESOLVE || recordsMatching === 0n) return undefined;
  return Math.min(1, Number(recordsExamined) / Number(recordsMatching));
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
