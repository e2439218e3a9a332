import { create } from "@bufbuild/protobuf";
import type { PolicyInForce, Retention } from "../../domain/policy.ts";
import { timestamp } from "../../domain/violations.ts";
import {
  RecordJob_Kind,
  RecordJob_State,
  type RecordJob as RecordJobMessage,
  RecordJobSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import type { LiveRecord } from "../../records/record.ts";

/** The retention that a policy stamps on records, before and after its change. */
export interface RetentionChange {
  readonly was: Retention;
  readonly becomes: Retention;
}

/** The changes of retention in a tenant's namespaces. */
export interface RetentionChanges {
  readonly byNamespace: Readonly<Record<string, RetentionChange>>;
  /** The change for all other namespaces; undefined: none. */
  readonly others: RetentionChange | undefined;
}

/** Returns the change for a namespace; undefined: none. */
export function changeFor(
  { byNamespace, others }: RetentionChanges,
  namespace: string,
): RetentionChange | undefined {
  return Object.hasOwn(byNamespace, namespace) ? byNamespace[namespace] : others;
}

/** Returns the change of retention from one policy to another. */
export function retentionChange(was: PolicyInForce, becomes: PolicyInForce): RetentionChange {
  return { was: was.stamped, becomes: becomes.stamped };
}

/** What a record job does to a tenant's records. */
export type RecordJobWork =
  /** Changes the retention of records, by `RetentionChanges`. */
  | { readonly kind: "RESTAMP" }
  /** Forgets the records that were claimed before the job was created: `claimedBefore`. */
  | { readonly kind: "FORGET" }
  /** Deletes all records, and then the tenant. */
  | { readonly kind: "DELETE" }
  | ResolveWork;

/** Which ambiguous records are meant. */
export interface AmbiguousFilter {
  /** Those that are ambiguous since before this time, in milliseconds since the Unix epoch. */
  readonly leaseExpiredBeforeMs: number;
  /** Empty: any. */
  readonly owner: string;
  /** The name of the last checkpoint. Empty: any, or none. */
  readonly checkpoint: string;
}

/**
 * Resolves the ambiguous records that match. No record begins to match after the job was created: it would have to
 * become ambiguous before `leaseExpiredBeforeMs`, which has passed.
 */
export interface ResolveWork {
  readonly kind: "RESOLVE";
  readonly which: AmbiguousFilter;
  /** The matching records that were counted before the job was created. */
  readonly matching: number;
  /** The parts of the audit events of the job's start and end. */
  readonly audit: {
    readonly tenantName: string;
    readonly actor: string;
    readonly requestId: string;
    readonly target: string;
    readonly reason: string;
  };
}

/** Whether a record that the transaction has locked is one of those that are to be resolved. */
export function matches(
  record: LiveRecord,
  { leaseExpiredBeforeMs, owner, checkpoint }: AmbiguousFilter,
): boolean {
  return (
    record.phase.kind === "ambiguous" &&
    record.phase.sinceMs < leaseExpiredBeforeMs &&
    (owner === "" || record.owner === owner) &&
    (checkpoint === "" || record.checkpoint?.name === checkpoint)
  );
}

/** Returns how many of the counted records a finished job has not changed. */
export function recordsLeftAlone({ matching }: ResolveWork, changed: number): number {
  return Math.max(0, matching - changed);
}

/**
 * When the newest claim of a record was granted at the latest for a job to change it, in milliseconds since the Unix epoch.
 * The database's clock may have been ahead when the job was created: a time between both bounds belongs to an earlier claim
 * if it is still in the future, and may belong to a later one if it is not.
 */
export interface ClaimedBefore {
  /** By the previous clock. */
  readonly courseMs: number;
  /** As the clock showed it. */
  readonly shownMs: number;
}

/** Returns which records a job changes, by their claims. A re-stamping includes those that were stamped by the old policy later. */
export function claimedBefore({ work, startsAtMs, createdAtMs }: RecordJob): ClaimedBefore {
  const courseMs = work.kind === "RESTAMP" ? startsAtMs : Math.min(startsAtMs, createdAtMs);
  return { courseMs, shownMs: createdAtMs };
}

/** A change of many records in the background. Times are milliseconds since the Unix epoch. */
export interface RecordJob {
  readonly id: bigint;
  readonly tenantId: number;
  /** Undefined: all namespaces of the tenant. */
  readonly namespace: string | undefined;
  readonly work: RecordJobWork;
  readonly state: "WAITING" | "RUNNING" | "DONE" | "CANCELLED";
  readonly recordsExamined: number;
  readonly recordsChanged: number;
  /** How many of the changed records are forgotten. */
  readonly recordsForgotten: number;
  /** As the database's clock showed it. */
  readonly createdAtMs: number;
  /** By the previous clock, if it was ahead when the job was created. */
  readonly startsAtMs: number;
  readonly finishedAtMs: number | undefined;
  /**
   * The last examined record; of a job that resolves, and of the deletion of a tenant whose records are all deleted, an empty
   * namespace, and where the next batch begins. Undefined: nothing was examined yet.
   */
  readonly after: { readonly namespace: string; readonly key: string } | undefined;
}

/** Returns a background change of records, with its progress. */
export function recordJobMessage(job: RecordJob): RecordJobMessage {
  const { work } = job;
  const leftAlone =
    work.kind === "RESOLVE" && job.state === "DONE" ? recordsLeftAlone(work, job.recordsChanged) : 0;
  return create(RecordJobSchema, {
    id: job.id,
    // The deletion of a tenant is never shown: its administrators no longer have access.
    kind: RecordJob_Kind[work.kind === "DELETE" ? "FORGET" : work.kind],
    namespace: job.namespace ?? "",
    state: RecordJob_State[job.state],
    recordsExamined: BigInt(job.recordsExamined),
    recordsChanged: BigInt(job.recordsChanged),
    recordsForgotten: BigInt(job.recordsForgotten),
    recordsMatching: BigInt(work.kind === "RESOLVE" ? work.matching : 0),
    recordsLeftAlone: BigInt(leftAlone),
    createdAt: timestamp(job.createdAtMs),
    startsAt: timestamp(job.startsAtMs),
    ...(job.finishedAtMs !== undefined && { finishedAt: timestamp(job.finishedAtMs) }),
  });
}
