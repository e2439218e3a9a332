import type { CachedCompletion } from "../../domain/record.ts";
import type { CompleteCommand } from "../../domain/settlement.ts";
import { laterMs } from "./instants.ts";

/** How long the key of a row `r` is remembered from its completion on, by an input `i`. */
export const KEY_RETENTION_S = `coalesce(i.key_retention_s, r.key_retention_s)`;
/** How long its result is: never for longer. */
export const RESULT_RETENTION_S = `least(
      ${KEY_RETENTION_S}, case i.result_kind when 1 then r.result_retention_s else r.failure_retention_s end)`;

/** What a statement's `applied` returns of a row `r` that it completed, for STORED. */
export const STORED_COLUMNS = `
    i.place, r.first_claimed_at, r.fingerprint,
    ${KEY_RETENTION_S} as key_retention_s, ${RESULT_RETENTION_S} as result_retention_s`;

/** Everything that a statement completed, from its `applied`, in one row and column: as GRANTED, and for the same reason. */
export const STORED = `
select json_build_object(
         'completedAtMs', date_part('epoch', now()) * 1000,
         'places', json_agg(a.place),
         'firstClaimedAt', json_agg(date_part('epoch', a.first_claimed_at) * 1000),
         'keyRetentions', json_agg(a.key_retention_s),
         'resultRetentions', json_agg(a.result_retention_s),
         'fingerprints', json_agg(encode(a.fingerprint, 'hex'))
       ) as stored
  from applied a`;

/** The row of STORED. */
export interface StoredRow {
  readonly stored: StoredResults;
}

/** Arrays, in one order; null: nothing was completed. */
interface StoredResults {
  readonly completedAtMs: number;
  readonly places: readonly number[] | null;
  readonly firstClaimedAt: readonly number[] | null;
  readonly keyRetentions: readonly number[] | null;
  readonly resultRetentions: readonly number[] | null;
  /** In hexadecimal digits. */
  readonly fingerprints: readonly (string | null)[] | null;
}

/** What commands made of their records, each where its command stands; none for one that was not applied. */
export function readStored(
  [row]: readonly StoredRow[],
  commands: readonly CompleteCommand[],
): readonly (CachedCompletion | undefined)[] {
  if (row === undefined) throw new Error("completions were not answered");
  const { stored } = row;
  const { completedAtMs } = stored;
  const copies: (CachedCompletion | undefined)[] = commands.map(() => undefined);
  for (const [i, place] of (stored.places ?? []).entries()) {
    const command = commands[place - 1];
    if (command === undefined) throw new Error("a claim was completed that nobody named");
    const fingerprint = stored.fingerprints?.[i];
    copies[place - 1] = {
      fingerprint: fingerprint ? Buffer.from(fingerprint, "hex") : undefined,
      firstClaimedAtMs: stored.firstClaimedAt?.[i] as number,
      completedAtMs,
      resultExpiresAtMs: laterMs(completedAtMs, (stored.resultRetentions?.[i] as number) * 1000),
      expiresAtMs: laterMs(completedAtMs, (stored.keyRetentions?.[i] as number) * 1000),
      result: command.result,
    };
  }
  return copies;
}
