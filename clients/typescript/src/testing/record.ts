import type { Checkpoint, Result } from "../gen/onceward/v1/record_pb.ts";
import type { TestingPolicy } from "./policy.ts";

/** The name of one record. */
export interface RecordId {
  readonly namespace: string;
  readonly key: string;
}

/** The policy that a claim stores on its record, so that later policies don't affect it. */
export type Terms = Pick<
  TestingPolicy,
  "onLeaseExpiry" | "keyRetentionS" | "resultRetentionS" | "failureRetentionS"
> & { readonly leaseMs: number };

/** How a claim ended. */
export type Settlement =
  | { readonly kind: "released"; readonly releasedAtMs: number; readonly reason: string }
  | {
      readonly kind: "completed";
      readonly completedAtMs: number;
      /** Kept beyond its retention, to distinguish a repeated Complete from a different one. */
      readonly result: Result;
      readonly resultExpiresAtMs: number;
    };

/** The record of one key. Immutable: an operation replaces it. Times are milliseconds since the Unix epoch. */
export interface StoredRecord {
  readonly id: RecordId;
  /** The newest claim's token. */
  readonly fencingToken: bigint;
  readonly attempt: number;
  readonly claimId: string;
  readonly owner: string;
  readonly fingerprint: Uint8Array | undefined;
  readonly firstClaimedAtMs: number;
  readonly claimedAtMs: number;
  readonly leaseExpiresAtMs: number;
  readonly expiresAtMs: number;
  readonly checkpoint: Checkpoint | undefined;
  readonly terms: Terms;
  /** Undefined: the newest claim is unfinished. */
  readonly settlement: Settlement | undefined;
}

/** The phase of an unfinished claim. */
export type Hold =
  /** The lease has not expired. */
  | "inProgress"
  /** The lease expired under RECLAIM: the next claim gets the key, but the holder may still complete. */
  | "lapsed"
  /**
   * The lease expired under HOLD: no claim gets the key without `acceptAmbiguous`, but the holder may still complete.
   */
  | "ambiguous";

/** Returns a record's phase at a time. */
export function phaseOf(record: StoredRecord, nowMs: number): Hold | Settlement["kind"] {
  const { settlement, leaseExpiresAtMs, terms } = record;
  if (settlement !== undefined) return settlement.kind;
  if (leaseExpiresAtMs > nowMs) return "inProgress";
  return terms.onLeaseExpiry === "HOLD" ? "ambiguous" : "lapsed";
}
