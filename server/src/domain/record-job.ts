import type { RetentionChanges } from "./retention-change.ts";

/** What a background change does to a tenant's records, and what it needs to know for it. */
export type RecordJobWork =
  /** Stamps retention anew. */
  | { readonly kind: "RESTAMP"; readonly changes: RetentionChanges }
  /** Forgets those that were claimed before the job was made. */
  | { readonly kind: "FORGET" }
  /** Removes all of them, and then the tenant. */
  | { readonly kind: "DELETE" };

/** A change of many records in the background; instants are milliseconds since the Unix epoch. */
export interface RecordJob {
  readonly id: bigint;
  readonly tenantId: number;
  /** Undefined: all namespaces of the tenant. */
  readonly namespace: string | undefined;
  readonly work: RecordJobWork;
  readonly state: "WAITING" | "RUNNING" | "DONE";
  readonly recordsExamined: number;
  readonly recordsChanged: number;
  /** Of those changed. */
  readonly recordsForgotten: number;
  readonly createdAtMs: number;
  readonly startsAtMs: number;
  readonly finishedAtMs: number | undefined;
  /** The last record that was looked at; undefined: none yet. */
  readonly after: { readonly namespace: string; readonly key: string } | undefined;
}

/**
 * When nothing is stamped any more by a policy that was just changed, on any replica: what an old one decides is sent within
 * 10 s (`Principal.goodUntilMs`), waits up to 3 s for a connection, and its statement lasts up to 5 s; two seconds are a margin.
 */
export const POLICY_SETTLES_MS = 20_000;

/** Of a tenant: more than people ask for within the time that some take, and few enough to be read at each look. */
export const MAX_UNFINISHED_JOBS = 20;
