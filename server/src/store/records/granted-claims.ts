import type { ClaimCommand } from "../../domain/claim.ts";
import { type LiveRecord, unfinishedPhase } from "../../domain/record.ts";
import { laterMs } from "./instants.ts";

/**
 * What an insertion's `applied` returns of a row that it made, for GRANTED. Tokens are drawn once a statement, for all of its
 * places: `drawn.token + place` lies below the next one that is drawn, and no other statement gives it out
 * (server/decisions/0001-one-statement-decides.md). So the token alone says whose it is.
 */
export const GRANTED_COLUMNS = `fencing_token - (select token from drawn) as place`;

/**
 * Everything that an insertion made, from its `applied`, in one row and one column: what a row for each costs is spent on its
 * columns, in Postgres and here. Places are told, and not even those where all are new: what a new row says is known from its
 * command and the moment.
 */
export const GRANTED = `
select json_build_object(
         'drawnToken', (select token from drawn)::text,
         'grantedAtMs', date_part('epoch', now()) * 1000,
         'answeredAtMs', date_part('epoch', clock_timestamp()) * 1000,
         'places', case when count(*) < cardinality($1::int[]) then coalesce(array_agg(a.place), '{}') end
       ) as granted
  from applied a`;

/** What the insertion of one row `r` returns. */
export const GRANTED_ALONE = `
  (r.fencing_token - 1)::text as "drawnToken",
  date_part('epoch', r.claimed_at) * 1000 as "grantedAtMs",
  date_part('epoch', clock_timestamp()) * 1000 as "answeredAtMs"`;

/** The row of GRANTED. */
export interface GrantedRow {
  readonly granted: Granting & {
    /** Null: all of them. */
    readonly places: readonly number[] | null;
  };
}

/** The row of GRANTED_ALONE, and of every insertion: when it was, and which tokens it drew. */
export interface Granting {
  readonly drawnToken: string;
  readonly grantedAtMs: number;
  readonly answeredAtMs: number;
}

/** The records that commands were granted, each where its command stands; none for one that was not granted. */
export function readGranted(
  [row]: readonly GrantedRow[],
  commands: readonly ClaimCommand[],
): readonly (LiveRecord | undefined)[] {
  if (row === undefined) throw new Error("claims were not answered");
  const { granted } = row;
  const newRecord = createNewRecord(granted);
  if (granted.places === null) return commands.map((command, index) => newRecord(command, index + 1));
  const records: (LiveRecord | undefined)[] = commands.map(() => undefined);
  for (const place of granted.places) {
    const command = commands[place - 1];
    if (command === undefined) throw new Error("a claim was granted that nobody made");
    records[place - 1] = newRecord(command, place);
  }
  return records;
}

/** The record that a lone command was granted. */
export function readGrantedAlone(granted: Granting, command: ClaimCommand): LiveRecord {
  return createNewRecord(granted)(command, 1);
}

/** @returns what makes the record that an insertion granted a command, by its place in the statement. */
function createNewRecord({ drawnToken, grantedAtMs, answeredAtMs }: Granting) {
  const token = BigInt(drawnToken);
  return (command: ClaimCommand, place: number): LiveRecord => {
    const { id, claimId, owner, fingerprint, leaseMs, keyRetentionS, onLeaseExpiry } = command;
    const leaseExpiresAtMs = laterMs(grantedAtMs, leaseMs);
    return {
      id,
      phase: unfinishedPhase(leaseExpiresAtMs > grantedAtMs, onLeaseExpiry),
      fencingToken: token + BigInt(place),
      attempt: 1,
      claimId,
      owner,
      fingerprint,
      firstClaimedAtMs: grantedAtMs,
      claimedAtMs: grantedAtMs,
      leaseExpiresAtMs,
      leaseRemainingMs: leaseExpiresAtMs - answeredAtMs,
      expiresAtMs: laterMs(grantedAtMs, Math.max(keyRetentionS * 1000, leaseMs)),
      checkpoint: undefined,
    };
  };
}
