import type { Contended } from "./claim.ts";
import {
  type CachedCompletion,
  type Checkpoint,
  cachedCompletionOf,
  type LiveRecord,
  type RecordId,
  type Result,
} from "./record.ts";
import { Refusal } from "./refusal.ts";

/** Stores the outcome of the claim that `fencingToken` names. */
export interface CompleteCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly result: Result;
  readonly resultDigest: Uint8Array;
  /** Undefined: as stamped at the claim. */
  readonly keyRetentionS: number | undefined;
}

/** Gives the claim that `fencingToken` names up. */
export interface ReleaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly reason: string;
}

/** Prolongs the lease of the claim that `fencingToken` names. */
export interface ExtendLeaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  /** Undefined: as long as the claim's own lease was. */
  readonly leaseMs: number | undefined;
  /** Undefined: leaves the record's as it is. */
  readonly checkpoint: Checkpoint | undefined;
}

/** What a Complete is answered with. */
export interface Completion {
  readonly kind: "completed";
  readonly completedAtMs: number;
  readonly expiresAtMs: number;
  readonly alreadyCompleted: boolean;
  /** For whoever keeps copies; undefined: its result is not at hand. */
  readonly copy: CachedCompletion | undefined;
}

/** What a Release is answered with. */
export interface Release {
  readonly kind: "released";
  readonly expiresAtMs: number;
}

/** What an ExtendLease is answered with. */
export interface LeaseExtension {
  readonly kind: "extended";
  readonly leaseExpiresAtMs: number;
  readonly leaseRemainingMs: number;
  readonly expiresAtMs: number;
}

/** The answer to the Complete that made a record what its copy says. */
export function completed(copy: CachedCompletion): Completion {
  const { completedAtMs, expiresAtMs } = copy;
  return { kind: "completed", completedAtMs, expiresAtMs, alreadyCompleted: false, copy };
}

/**
 * The answer to a Complete that changed nothing, from the record it met.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED (with another result), ALREADY_RELEASED.
 */
export function answerComplete(
  record: LiveRecord | undefined,
  command: CompleteCommand,
): Completion | Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "completed":
      if (Buffer.compare(own.phase.resultDigest, command.resultDigest) !== 0) {
        throw new Refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
      }
      return {
        kind: "completed",
        completedAtMs: own.phase.completedAtMs,
        expiresAtMs: own.expiresAtMs,
        alreadyCompleted: true,
        copy: cachedCompletionOf(own),
      };
    case "released":
      throw alreadyReleased();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

/**
 * The answer to a Release that changed nothing, from the record it met.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED.
 */
export function answerRelease(record: LiveRecord | undefined, command: ReleaseCommand): Release | Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "released":
      return { kind: "released", expiresAtMs: own.expiresAtMs };
    case "completed":
      throw alreadyCompleted();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

/**
 * The answer to an ExtendLease that changed nothing, from the record it met.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED, ALREADY_RELEASED.
 */
export function answerExtendLease(record: LiveRecord | undefined, command: ExtendLeaseCommand): Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "completed":
      throw alreadyCompleted();
    case "released":
      throw alreadyReleased();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

function ownRecord(record: LiveRecord | undefined, fencingToken: bigint): LiveRecord {
  if (record === undefined) {
    throw new Refusal(
      "RECORD_NOT_FOUND",
      "There is no such record: never claimed, or its retention has ended.",
    );
  }
  if (record.fencingToken !== fencingToken) {
    throw new Refusal("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.");
  }
  return record;
}

function alreadyCompleted(): Refusal {
  return new Refusal("ALREADY_COMPLETED", "The claim was completed before.");
}

function alreadyReleased(): Refusal {
  return new Refusal("ALREADY_RELEASED", "The claim was released before.");
}
