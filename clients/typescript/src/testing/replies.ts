import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ClaimResponse,
  ClaimResponseSchema,
  type ExtendLeaseResponse,
  ExtendLeaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { type Record as KnownRecord, Record_State, RecordSchema } from "../gen/onceward/v1/record_pb.ts";
import { phaseOf, type Settlement, type StoredRecord } from "./record.ts";
import type { ClaimOutcome } from "./records.ts";

/** More frequent retries would be of no use. */
const MAX_RETRY_AFTER_MS = 1000;
const MIN_RETRY_AFTER_MS = 10;

/** Returns the reply to a Claim at a time. */
export function claimResponse(outcome: ClaimOutcome, nowMs: number): ClaimResponse {
  return create(ClaimResponseSchema, {
    outcome: claimOutcome(outcome, nowMs),
    expiresAt: timestampFromMs(outcome.record.expiresAtMs),
    serverTime: timestampFromMs(nowMs),
  });
}

function claimOutcome({ kind, record }: ClaimOutcome, nowMs: number) {
  const { fencingToken, attempt, owner, settlement } = record;
  const checkpoint = record.checkpoint && { checkpoint: record.checkpoint };
  const leaseEnd = timestampFromMs(record.leaseExpiresAtMs);
  switch (kind) {
    case "granted":
    case "recovered": {
      const leaseRemaining = durationFromMs(record.leaseExpiresAtMs - nowMs);
      const firstClaimedAt = timestampFromMs(record.firstClaimedAtMs);
      const lease = { leaseExpiresAt: leaseEnd, leaseRemaining };
      return {
        case: "claimed" as const,
        value: { fencingToken, attempt, firstClaimedAt, ...lease, ...checkpoint },
      };
    }
    case "inProgress": {
      const remainingMs = record.leaseExpiresAtMs - nowMs;
      const retryAfter = durationFromMs(
        Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, remainingMs)),
      );
      return { case: "inProgress" as const, value: { owner, attempt, leaseExpiresAt: leaseEnd, retryAfter } };
    }
    case "replayed": {
      if (settlement?.kind !== "completed") throw new Error("a replay of what is not completed");
      const { completedAt, result, resultExpired } = completionFields(settlement, nowMs);
      return { case: "completed" as const, value: { completedAt, resultExpired, ...(result && { result }) } };
    }
    case "ambiguous":
      return {
        case: "ambiguous" as const,
        value: { owner, attempt, leaseExpiredAt: leaseEnd, ...checkpoint },
      };
  }
}

/** Returns the reply to an ExtendLease. */
export function extendLeaseResponse(record: StoredRecord, nowMs: number): ExtendLeaseResponse {
  return create(ExtendLeaseResponseSchema, {
    leaseExpiresAt: timestampFromMs(record.leaseExpiresAtMs),
    leaseRemaining: durationFromMs(record.leaseExpiresAtMs - nowMs),
    expiresAt: timestampFromMs(record.expiresAtMs),
  });
}

/** Returns a record as Lookup returns it. */
export function recordMessage(record: StoredRecord, nowMs: number): KnownRecord {
  const { id, fencingToken, attempt, owner, fingerprint, checkpoint } = record;
  return create(RecordSchema, {
    ...id,
    fencingToken,
    attempt,
    owner,
    ...(fingerprint && { fingerprint }),
    ...(checkpoint && { checkpoint }),
    firstClaimedAt: timestampFromMs(record.firstClaimedAtMs),
    claimedAt: timestampFromMs(record.claimedAtMs),
    leaseExpiresAt: timestampFromMs(record.leaseExpiresAtMs),
    expiresAt: timestampFromMs(record.expiresAtMs),
    ...stateFields(record, nowMs),
  });
}

function stateFields(record: StoredRecord, nowMs: number) {
  const { settlement } = record;
  switch (settlement?.kind) {
    case "completed":
      return {
        state: Record_State.COMPLETED,
        resultExpiresAt: timestampFromMs(settlement.resultExpiresAtMs),
        ...completionFields(settlement, nowMs),
      };
    case "released":
      return {
        state: Record_State.RELEASED,
        releasedAt: timestampFromMs(settlement.releasedAtMs),
        releaseReason: settlement.reason,
      };
    case undefined: {
      const isAmbiguous = phaseOf(record, nowMs) === "ambiguous";
      return { state: isAmbiguous ? Record_State.AMBIGUOUS : Record_State.IN_PROGRESS };
    }
  }
}

function completionFields(completion: Extract<Settlement, { kind: "completed" }>, nowMs: number) {
  const resultExpired = completion.resultExpiresAtMs <= nowMs;
  return {
    completedAt: timestampFromMs(completion.completedAtMs),
    resultExpired,
    ...(!resultExpired && { result: completion.result }),
  };
}
