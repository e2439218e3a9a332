import { Refusal } from "../domain/refusal.ts";
import type { LiveRecord } from "./record.ts";

/**
 * Returns the record of the claim that a fencing token identifies: what Complete, Release and ExtendLease have to find.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED.
 */
export function ownRecord(record: LiveRecord | undefined, fencingToken: bigint): LiveRecord {
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

/**
 * Whether the end of the record's newest claim tells what became of an unknown outcome that it took over: it accepted ambiguity. A
 * claim that is granted without that, under RECLAIM, only repeats the operation.
 */
export function settlesUnknown({ unknown, acceptedAmbiguous = false }: LiveRecord): boolean {
  return unknown !== undefined && acceptedAmbiguous;
}

/** Returns the refusal of a Release or an ExtendLease of a completed claim. */
export function alreadyCompleted(): Refusal {
  return new Refusal("ALREADY_COMPLETED", "The claim was completed before.");
}

/** Returns the refusal of a Complete or an ExtendLease of a released claim. */
export function alreadyReleased(): Refusal {
  return new Refusal("ALREADY_RELEASED", "The claim was released before.");
}
