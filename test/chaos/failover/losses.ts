import { nameOf, type RecordName, type SeenRecord } from "../../history/operation.ts";

/** Something that the service said had happened. */
export interface Acknowledgement {
  readonly kind: "claim" | "complete";
  readonly record: RecordName;
  readonly token: number;
  /** Of the result that was completed with; undefined for a claim. */
  readonly hash?: string;
  /** When the caller was told, on the clock of histories. */
  readonly atMs: number;
}

/** What is not there any more. */
export interface Losses {
  readonly claims: readonly Acknowledgement[];
  readonly completes: readonly Acknowledgement[];
}

/**
 * Compares what was acknowledged with what is there; `found` is by `nameOf` a record. A claim is lost if its token is not
 * the record's, and a completion if the record is not completed with its token and result. Nobody else may have worked at
 * these keys.
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

/** How long before the kill the first of what was lost had been acknowledged; 0 if nothing was. */
export function lostForMs({ claims, completes }: Losses, killedAtMs: number): number {
  const firstAtMs = Math.min(killedAtMs, ...[...claims, ...completes].map(({ atMs }) => atMs));
  return killedAtMs - firstAtMs;
}
