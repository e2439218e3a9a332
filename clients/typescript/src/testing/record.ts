import type { Checkpoint, Result } from "../gen/onceward/v1/record_pb.ts";
import type { TestingPolicy } from "./policy.ts";

/** Names one record. */
export interface RecordId {
  readonly namespace: string;
  readonly key: string;
}

/** What is stamped on a record at its claim, so that no later policy reaches it. */
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
      /** Kept beyond its retention, to tell a repeated Complete from a different one. */
      readonly result: Result;
      readonly resultExpiresAtMs: number;
    };

/** What is kept of one key. Never changed: an operation replaces it. Moments are milliseconds since the Unix epoch. */
export interface StoredRecord {
  readonly id: RecordId;
  /** Names the newest claim. */
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

/** Where an unfinished claim stands. */
export type Hold =
  /** Its lease runs. */
  | "inProgress"
  /** The lease ran out under RECLAIM: the next claim gets the key, but the holder may still complete. */
  | "lapsed"
  /** The lease ran out under HOLD: nobody gets the key unasked, but the holder may still complete. */
  | "ambiguous";

/** Where a record stands at a moment. */
export function phaseOf(record: StoredRecord, nowMs: number): Hold | Settlement["kind"] {
  const { settlement, leaseExpiresAtMs, terms } = record;
  if (settlement !== undefined) return settlement.kind;
  if (leaseExpiresAtMs > nowMs) return "inProgress";
  return terms.onLeaseExpiry === "HOLD" ? "ambiguous" : "lapsed";
}
