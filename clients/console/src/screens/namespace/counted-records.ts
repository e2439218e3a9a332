import type { CountRecordsResponse } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";

/** How many records a namespace has. */
export interface CountedRecords {
  readonly count: bigint;
  readonly ambiguous: bigint;
  /** The server did not examine all records for one answer. */
  readonly isLowerBound: boolean;
}

/** Returns the records of one answer, of every state. */
export function countOf(answer: CountRecordsResponse): CountedRecords {
  const { inProgress, lapsed, completed, released, ambiguous, nextPageToken } = answer;
  const count = inProgress + lapsed + completed + released + ambiguous;
  return { count, ambiguous, isLowerBound: nextPageToken !== "" };
}

/** Returns whether a namespace is known to have no record. */
export function isEmpty({ count, isLowerBound }: CountedRecords): boolean {
  return count === 0n && !isLowerBound;
}
