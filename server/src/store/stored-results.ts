import type { CompletedCopy } from "../domain/record.ts";
import type { CompleteCommand } from "../domain/settlement.ts";
import { NO_RECORD_COLUMNS, type RecordRow } from "./record-row.ts";

/** What a statement's `applied` returns of a row `r` that it completed, for STORED. */
export const STORED_COLUMNS = `i.place, r.first_claimed_at, r.expires_at, r.result_expires_at, r.fingerprint`;

/** Everything that a statement completed, from its `applied`, in one row: as GRANTED, and for the same reason. */
export const STORED = `
select date_part('epoch', now()) * 1000 as completed_at_ms,
       json_agg(a.place) as places,
       json_agg(date_part('epoch', a.first_claimed_at) * 1000) as first_claimed_at_mss,
       json_agg(date_part('epoch', a.expires_at) * 1000) as expire_at_mss,
       json_agg(date_part('epoch', a.result_expires_at) * 1000) as results_expire_at_mss,
       json_agg(encode(a.fingerprint, 'hex')) as fingerprints,
       ${NO_RECORD_COLUMNS}
  from applied a`;

/** In place of the columns of STORED, in a row that tells of one record. */
export const NO_STORED_COLUMNS = Array(6).fill("null").join(", ");

/** STORED as `pg` parses it. */
export interface StoredRow extends RecordRow {
  readonly completed_at_ms: number;
  readonly places: readonly number[] | null;
  readonly first_claimed_at_mss: readonly number[] | null;
  readonly expire_at_mss: readonly number[] | null;
  readonly results_expire_at_mss: readonly number[] | null;
  /** In hexadecimal digits. */
  readonly fingerprints: readonly (string | null)[] | null;
}

/** What commands made of their records, each where its command stands; none for one that was not applied. */
export function readStored(
  row: StoredRow,
  commands: readonly CompleteCommand[],
): readonly (CompletedCopy | undefined)[] {
  const copies: (CompletedCopy | undefined)[] = commands.map(() => undefined);
  for (const [i, place] of (row.places ?? []).entries()) {
    const command = commands[place - 1];
    if (command === undefined) throw new Error("a claim was completed that nobody named");
    const fingerprint = row.fingerprints?.[i];
    copies[place - 1] = {
      fingerprint: fingerprint ? Buffer.from(fingerprint, "hex") : undefined,
      firstClaimedAtMs: row.first_claimed_at_mss?.[i] as number,
      completedAtMs: row.completed_at_ms,
      resultExpiresAtMs: row.results_expire_at_mss?.[i] as number,
      expiresAtMs: row.expire_at_mss?.[i] as number,
      result: command.result,
    };
  }
  return copies;
}
