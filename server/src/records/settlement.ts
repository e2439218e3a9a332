import { Refusal } from "../core/domain/refusal.ts";
import {
  type CachedCompletion,
  type Checkpoint,
  type Contended,
  cachedCompletionOf,
  type LiveRecord,
  type RecordId,
  type Result,
} from "./record.ts";

/** Stores the result of the claim that `fencingToken` identifies. */
export interface CompleteCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly result: Result;
  readonly resultDigest: Uint8Array;
  /** Undefined: as stored at the claim. */
  readonly keyRetentionS: number | undefined;
}

/** Releases the claim that `fencingToken` identifies. */
export interface ReleaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly reason: string;
}

/** Extends the lease of the claim that `fencingToken` identifies. */
export interface ExtendLeaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  /** Undefined: the length of the claim's own lease. */
  readonly leaseMs: number | undefined;
  /** Undefined: keeps the record's checkpoint. */
  readonly checkpoint: Checkpoint | undefined;
}

/** The answer to a Complete. */
export interface Completion {
  readonly kind: "completed";
  readonly completedAtMs: number;
  readonly expiresAtMs: number;
  readonly alreadyCompleted: boolean;
  /** The completion for caches; undefined: its result was not read. */
  readonly copy: CachedCompletion | undefined;
}

/** The answer to a Release. */
export interface Release {
  readonly kind: "released";
  readonly expiresAtMs: number;
}

/** The answer to an ExtendLease. */
export interface LeaseExtension
  extends Pick<LiveRecord, "leaseExpiresAtMs" | "leaseRemainingMs" | "expiresAtMs"> {
  readonly kind: "extended";
}

/** Returns the answer to a Complete that stored a result, from what it stored. */
export function completed(copy: CachedCompletion): Completion {
  const { completedAtMs, expiresAtMs } = copy;
  return { kind: "completed", completedAtMs, expiresAtMs, alreadyCompleted: false, copy };
}

/**
 * Returns the answer to a Complete that changed nothing, from the record that it found.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED (with another result),
 *   ALREADY_RELEASED.
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
 * Returns the answer to a Release that changed nothing, from the record that it found.
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
 * Returns the answer to an ExtendLease that changed nothing, from the record that it found.
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
      "There is no such record: the key was never claimed, or its retention has ended.",
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
