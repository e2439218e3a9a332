import { Refusal } from "../../domain/refusal.ts";
import type { LiveRecord, RecordId, Result } from "../../records/record.ts";

/** An administrator's decision about a record that its holder has left unresolved. */
export type Resolution =
  /** The record is forgotten, as if its key had never been claimed. */
  | { readonly kind: "forget" }
  /** The side effect did not happen: the next Claim is granted. */
  | { readonly kind: "release" }
  /** The side effect happened, with this result. */
  | { readonly kind: "complete"; readonly result: Result; readonly resultDigest: Uint8Array };

/** Resolves a record, regardless of its holder. */
export interface ResolveCommand {
  readonly id: RecordId;
  readonly resolution: Resolution;
  /** The administrator's text. */
  readonly reason: string;
  /** The record job that resolves it; undefined: a call for this record. */
  readonly recordJob: bigint | undefined;
  /** Resolves only the claim with this token; undefined: the newest claim. */
  readonly fencingToken: bigint | undefined;
}

/**
 * Returns the record if the command changes it; undefined if it already is as the command asks.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED (released, or with another result).
 */
export function recordToChange(
  record: LiveRecord | undefined,
  { resolution, fencingToken }: ResolveCommand,
): LiveRecord | undefined {
  if (record === undefined) {
    throw new Refusal(
      "RECORD_NOT_FOUND",
      "There is no such record: the key was never claimed, or its retention has ended.",
    );
  }
  if (fencingToken !== undefined && record.fencingToken !== fencingToken) {
    throw new Refusal("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.");
  }
  switch (resolution.kind) {
    case "forget":
      return record;
    case "release":
      if (record.phase.kind === "completed") {
        throw new Refusal("ALREADY_COMPLETED", "The claim was completed; only forgetting undoes that.");
      }
      return record.phase.kind === "released" ? undefined : record;
    case "complete":
      if (record.phase.kind !== "completed") return record;
      if (Buffer.compare(record.phase.resultDigest, resolution.resultDigest) === 0) return undefined;
      throw new Refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
  }
}
