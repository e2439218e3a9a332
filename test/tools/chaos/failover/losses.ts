import { nameOf, type RecordName, type SeenRecord } from "../../history/operation.ts";

/** A claim or completion that the service acknowledged. */
export interface Acknowledgement {
  readonly kind: "claim" | "complete";
  readonly record: RecordName;
  readonly token: number;
  /** The hash of the completion's result; undefined for a claim. */
  readonly hash?: string;
  /** When the reply arrived, on the clock of histories. */
  readonly atMs: number;
}

/** The acknowledgements that are lost. */
export interface Losses {
  readonly claims: readonly Acknowledgement[];
  readonly completes: readonly Acknowledgement[];
}

/**
 * Compares acknowledgements with the records found, which are keyed by `nameOf`. A claim is lost if its token
 * is not the record's, a completion if the record is not completed with its token and result. Only one caller
 * may have used each key.
 */
export function lossesOf(
  acknowledgements: readonly Acknowledgement[],
  found: ReadonlyMap<string, SeenRecord | undefined>,
): Losses {
  const lost = acknowledgements.filter(({ kind, record, token, hash }) => {
    const seen = found.get(nameOf(record));
    if (seen === undefined || seen.token !== token) return true;
    return kind === "complete" && (seen.state !== "completed" || seen.hash !== hash);
  });
  return {
    claims: lost.filter(({ kind }) => kind === "claim"),
    completes: lost.filter(({ kind }) => kind === "complete"),
  };
}

/**
 * Returns how long before the kill the first lost acknowledgement was given, in milliseconds; 0 if none is
 * lost.
 */
export function lostForMs({ claims, completes }: Losses, killedAtMs: number): number {
  const firstAtMs = Math.min(killedAtMs, ...[...claims, ...completes].map(({ atMs }) => atMs));
  return killedAtMs - firstAtMs;
}
