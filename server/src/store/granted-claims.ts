import type { ClaimCommand } from "../domain/claim.ts";
import { type LiveRecord, recordName, unfinishedPhase } from "../domain/record.ts";
import { laterMs } from "./instants.ts";
import { type MetRow, NO_MET_COLUMNS } from "./record-row.ts";

/**
 * A claim's key was not in use, and the row has the very token that its place in `input` was drawn. Tokens are drawn
 * once a statement, for all of its places: `drawn.token + place` lies below the next one that is drawn, and no other
 * statement gives it out (server/decisions/0001-one-statement-decides.md). So the token alone says whose it is.
 */
const IS_NEW = `r.attempt = 1 and r.fencing_token <= (select token from drawn) + cardinality($1::int[])`;

/** Of a row `r` that was taken over. */
const TAKEN_OVER = `json_build_object(
         'tenantId', r.tenant_id,
         'namespace', r.namespace,
         'key', r.key,
         'fencingToken', r.fencing_token::text,
         'attempt', r.attempt,
         'fingerprint', encode(r.fingerprint, 'hex'),
         'firstClaimedAtMs', date_part('epoch', r.first_claimed_at) * 1000,
         'leaseExpiresAtMs', date_part('epoch', r.lease_expires_at) * 1000,
         'expiresAtMs', date_part('epoch', r.expires_at) * 1000,
         'checkpointName', r.checkpoint_name,
         'checkpointState', encode(r.checkpoint_state, 'hex')
       )`;

/** What a statement's `applied` returns of a row `r` that it granted, for GRANTED: a new row's place, all of another. */
export const GRANTED_COLUMNS = `
  case when ${IS_NEW} then r.fencing_token - (select token from drawn) end as new_place,
  case when not (${IS_NEW}) then ${TAKEN_OVER} end as taken_over`;

/**
 * Of the only row `r` that a statement granted, as GRANTED tells it. A row's first attempt, new or in a new life, is all that
 * its command and its token say.
 */
export const GRANTED_ALONE = `
  (r.fencing_token - 1)::text as "drawnToken",
  date_part('epoch', r.claimed_at) * 1000 as "grantedAtMs",
  date_part('epoch', clock_timestamp()) * 1000 as "answeredAtMs",
  case when r.attempt > 1 then json_build_array() end as "newPlaces",
  case when r.attempt > 1 then json_build_array(${TAKEN_OVER}) end as "takenOver"`;

/**
 * Everything that a statement granted, from its `applied`, in one row and one column: what a row for each costs is spent
 * on its columns, in Postgres and here. Of new rows their places are told, and nothing where all are new: what they say is
 * known from the commands and the moment. What was taken over is rarer, and told by its name.
 */
export const GRANTED = `
select json_build_object(
         'drawnToken', (select token from drawn)::text,
         'grantedAtMs', date_part('epoch', now()) * 1000,
         'answeredAtMs', date_part('epoch', clock_timestamp()) * 1000,
         'newPlaces', case when count(a.new_place) < cardinality($1::int[])
                           then coalesce(array_agg(a.new_place) filter (where a.new_place is not null), '{}') end,
         'takenOver', json_agg(a.taken_over) filter (where a.taken_over is not null)
       ) as granted,
       ${NO_MET_COLUMNS}
  from applied a`;

/** A row of GRANTED, or, with MET_COLUMNS and null in its place, of what was met. */
export interface GrantedRow extends MetRow {
  readonly granted: GrantedClaims | null;
}

/** What GRANTED says, or a row of GRANTED_ALONE. */
export interface GrantedClaims {
  readonly drawnToken: string;
  readonly grantedAtMs: number;
  readonly answeredAtMs: number;
  /** Null: all of them. */
  readonly newPlaces: readonly number[] | null;
  readonly takenOver: readonly TakenOver[] | null;
}

interface TakenOver {
  readonly tenantId: number;
  readonly namespace: string;
  readonly key: string;
  readonly fencingToken: string;
  readonly attempt: number;
  /** In hexadecimal digits, as the checkpoint's state. */
  readonly fingerprint: string | null;
  readonly firstClaimedAtMs: number;
  readonly leaseExpiresAtMs: number;
  readonly expiresAtMs: number;
  readonly checkpointName: string | null;
  readonly checkpointState: string | null;
}

/** What of a granted record the command doesn't say. */
type Granted = Pick<
  LiveRecord,
  | "fencingToken"
  | "attempt"
  | "fingerprint"
  | "firstClaimedAtMs"
  | "leaseExpiresAtMs"
  | "expiresAtMs"
  | "checkpoint"
>;

/** The records that commands were granted, each where its command stands; none for one that was not granted. */
export function readGranted(
  granted: GrantedClaims,
  commands: readonly ClaimCommand[],
): readonly (LiveRecord | undefined)[] {
  const { drawnToken, grantedAtMs, newPlaces, takenOver } = granted;
  const token = BigInt(drawnToken);
  const newRecord = (command: ClaimCommand, place: number) =>
    grantedRecord(granted, command, {
      fencingToken: token + BigInt(place),
      attempt: 1,
      fingerprint: command.fingerprint,
      firstClaimedAtMs: grantedAtMs,
      leaseExpiresAtMs: laterMs(grantedAtMs, command.leaseMs),
      expiresAtMs: laterMs(grantedAtMs, Math.max(command.keyRetentionS * 1000, command.leaseMs)),
      checkpoint: undefined,
    });
  if (newPlaces === null) return commands.map((command, index) => newRecord(command, index + 1));
  const records: (LiveRecord | undefined)[] = commands.map(() => undefined);
  for (const place of newPlaces) records[place - 1] = newRecord(grantee(commands, place - 1), place);
  if (takenOver !== null) {
    const indexes = new Map(commands.map(({ id }, index) => [recordName(id), index]));
    for (const taken of takenOver) {
      const index = indexes.get(recordName(taken)) ?? -1;
      records[index] = grantedRecord(granted, grantee(commands, index), parseTakenOver(taken));
    }
  }
  return records;
}

function grantee(commands: readonly ClaimCommand[], index: number): ClaimCommand {
  const command = commands[index];
  if (command === undefined) throw new Error("a claim was granted that nobody made");
  return command;
}

function grantedRecord(
  { grantedAtMs, answeredAtMs }: GrantedClaims,
  { id, onLeaseExpiry, claimId, owner }: ClaimCommand,
  granted: Granted,
): LiveRecord {
  const { leaseExpiresAtMs } = granted;
  return {
    id,
    phase: unfinishedPhase(leaseExpiresAtMs > grantedAtMs, onLeaseExpiry),
    fencingToken: granted.fencingToken,
    attempt: granted.attempt,
    claimId,
    owner,
    fingerprint: granted.fingerprint,
    firstClaimedAtMs: granted.firstClaimedAtMs,
    claimedAtMs: grantedAtMs,
    leaseExpiresAtMs,
    leaseRemainingMs: leaseExpiresAtMs - answeredAtMs,
    expiresAtMs: granted.expiresAtMs,
    checkpoint: granted.checkpoint,
  };
}

function parseTakenOver(taken: TakenOver): Granted {
  const { attempt, firstClaimedAtMs, leaseExpiresAtMs, expiresAtMs, checkpointName, checkpointState } = taken;
  return {
    fencingToken: BigInt(taken.fencingToken),
    attempt,
    fingerprint: taken.fingerprint === null ? undefined : Buffer.from(taken.fingerprint, "hex"),
    firstClaimedAtMs,
    leaseExpiresAtMs,
    expiresAtMs,
    checkpoint:
      checkpointName === null
        ? undefined
        : { name: checkpointName, state: Buffer.from(checkpointState ?? "", "hex") },
  };
}
