import type { RetentionChanges } from "./retention-change.ts";

/** What a record job does to a tenant's records. */
export type RecordJobWork =
  /** Changes the retention of records. */
  | { readonly kind: "RESTAMP"; readonly changes: RetentionChanges }
  /** Forgets the records that were claimed before the job was created. */
  | { readonly kind: "FORGET" }
  /** Deletes all records, and then the tenant. */
  | { readonly kind: "DELETE" };

/** A change of many records in the background. Times are milliseconds since the Unix epoch. */
export interface RecordJob {
  readonly id: bigint;
  readonly tenantId: number;
  /** Undefined: all namespaces of the tenant. */
  readonly namespace: string | undefined;
  readonly work: RecordJobWork;
  readonly state: "WAITING" | "RUNNING" | "DONE";
  readonly recordsExamined: number;
  readonly recordsChanged: number;
  /** How many of the changed records are forgotten. */
  readonly recordsForgotten: number;
  readonly createdAtMs: number;
  readonly startsAtMs: number;
  readonly finishedAtMs: number | undefined;
  /** The last examined record; undefined: none yet. */
  readonly after: { readonly namespace: string; readonly key: string } | undefined;
}

/**
 * Time from a change of a policy until no replica stores records by the old policy any more: a replica uses
 * the old policy for up to 10 s (`Principal.goodUntilMs`), waits up to 3 s for a connection, and its
 * statement takes up to 5 s. Two seconds are margin.
 */
export const POLICY_SETTLES_MS = 20_000;

/**
 * Maximum unfinished jobs of a tenant: more than people create while some run, and few enough to read at each
 * look.
 */
export const MAX_UNFINISHED_JOBS = 20;
