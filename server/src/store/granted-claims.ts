import type { ClaimCommand } from "../domain/claim.ts";
import { type LiveRecord, recordName, unfinishedPhase } from "../domain/record.ts";
import { NO_RECORD_COLUMNS, type RecordRow } from "./record-row.ts";

/**
 * A claim's key was not in use, and the row has the very token that its place in `input` was drawn. Tokens are drawn
 * once a statement, for all of its places: `drawn.token + place` lies below the next one that is drawn, and no other
 * statement gives it out (server/decisions/0001-one-statement-decides.md). So the token alone says whose it is.
 */
const IS_NEW = `r.attempt = 1 and r.fencing_token <= (select token from drawn) + cardinality($1::int[])`;

/**
 * Everything that a statement granted, from its `applied`, in one row of columns that hold arrays: what a row for each
 * costs is spent on its columns, in Postgres and here. What was taken over is rarer, and told by its name.
 */
export const GRANTED = `
select (select token from drawn)::text as drawn_token,
       date_part('epoch', now()) * 1000 as granted_at_ms,
       date_part('epoch', clock_timestamp()) * 1000 as answered_at_ms,
       json_agg(r.fencing_token - (select token from drawn)) filter (where ${IS_NEW}) as new_places,
       json_agg(date_part('epoch', r.lease_expires_at) * 1000) filter (where ${IS_NEW}) as new_leases_expire_at_ms,
       json_agg(date_part('epoch', r.expires_at) * 1000) filter (where ${IS_NEW}) as new_expire_at_ms,
       json_agg(json_build_object(
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
       )) filter (where not (${IS_NEW})) as taken_over,
       ${NO_RECORD_COLUMNS}
  from applied r`;

/** In place of the columns of GRANTED, in a row that tells of one record. */
export const NO_GRANTED_COLUMNS = Array(7).fill("null").join(", ");

/** GRANTED as `pg` parses it. */
export interface GrantedRow extends RecordRow {
  readonly drawn_token: string;
  readonly granted_at_ms: number;
  readonly answered_at_ms: number;
  readonly new_places: readonly number[] | null;
  readonly new_leases_expire_at_ms: readonly number[] | null;
  readonly new_expire_at_ms: readonly number[] | null;
  readonly taken_over: readonly TakenOver[] | null;
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
  row: GrantedRow,
  commands: readonly ClaimCommand[],
): readonly (LiveRecord | undefined)[] {
  const records: (LiveRecord | undefined)[] = commands.map(() => undefined);
  const grant = (index: number, granted: Granted) => {
    const command = commands[index];
    if (command === undefined) throw new Error("a claim was granted that nobody made");
    records[index] = grantedRecord(row, command, granted);
  };
  const drawnToken = BigInt(row.drawn_token);
  for (const [i, place] of (row.new_places ?? []).entries()) {
    grant(place - 1, {
      fencingToken: drawnToken + BigInt(place),
      attempt: 1,
      fingerprint: commands[place - 1]?.fingerprint,
      firstClaimedAtMs: row.granted_at_ms,
      leaseExpiresAtMs: row.new_leases_expire_at_ms?.[i] as number,
      expiresAtMs: row.new_expire_at_ms?.[i] as number,
      checkpoint: undefined,
    });
  }
  if (row.taken_over !== null) {
    const indexes = new Map(commands.map(({ id }, index) => [recordName(id), index]));
    for (const taken of row.taken_over) grant(indexes.get(recordName(taken)) ?? -1, parseTakenOver(taken));
  }
  return records;
}

function grantedRecord(row: GrantedRow, command: ClaimCommand, granted: Granted): LiveRecord {
  return {
    id: command.id,
    phase: unfinishedPhase(granted.leaseExpiresAtMs > row.granted_at_ms, command.onLeaseExpiry),
    fencingToken: granted.fencingToken,
    attempt: granted.attempt,
    claimId: command.claimId,
    owner: command.owner,
    fingerprint: granted.fingerprint,
    firstClaimedAtMs: granted.firstClaimedAtMs,
    claimedAtMs: row.granted_at_ms,
    leaseExpiresAtMs: granted.leaseExpiresAtMs,
    leaseRemainingMs: granted.leaseExpiresAtMs - row.answered_at_ms,
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
