import type { LiveRecord, RecordId, Result } from "./record.ts";
import { Refusal } from "./refusal.ts";

/** What an administrator says of a record that nobody else can set right. */
export type Resolution =
  /** As if its key had never been claimed. */
  | { readonly kind: "forget" }
  /** The effect did not happen: the next Claim gets the key. */
  | { readonly kind: "release" }
  /** The effect happened. */
  | { readonly kind: "complete"; readonly result: Result; readonly resultDigest: Uint8Array };

/** Resolves a record, whoever holds it. */
export interface ResolveCommand {
  readonly id: RecordId;
  readonly resolution: Resolution;
  /** As the administrator gives it. */
  readonly reason: string;
  /** Resolve only the claim that it names; undefined: whichever is the newest. */
  readonly fencingToken: bigint | undefined;
}

/**
 * The record, if it has to be changed; undefined: it is what the command asks for already.
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
      "There is no such record: never claimed, or its retention has ended.",
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
