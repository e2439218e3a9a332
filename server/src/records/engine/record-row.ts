import type pg from "pg";
import { intArray, textArray } from "../../database/sql-arrays.ts";
import { clockMoved, LATEST_AHEAD_MS } from "../../domain/database-clock.ts";
import {
  addMs,
  EMPTY_RESULT,
  type LiveRecord,
  type Phase,
  type RecordId,
  type Result,
  recordName,
  unfinishedPhase,
} from "../record.ts";

/** The numbers of `records.state`. */
export const STATE = { forgotten: 0, inProgress: 1, completed: 2, released: 3 } as const;

/** The numbers of `records.result_kind`. */
export const RESULT_KIND = { success: 1, failure: 2 } as const;

/**
 * How long a row stays after its retention has ended or its record was forgotten. The row keeps the key's
 * fencing token, and must outlast every statement that read the clock before, which a statement's
 * timeouts end after 6 s, and the time in which replicas learn of a floor (decisions/0025-tokens-from-the-clock.md).
 */
export const FENCING_MARGIN_MS = 120_000;

/**
 * A larger result (payload and metadata, as stored) is read separately (`large-results.ts`), so that a statement for
 * hundreds of keys cannot return hundreds of megabytes. The default of max_result_bytes, so that few tenants need the
 * second read.
 */
export const MAX_INLINE_RESULT_BYTES = 64 * 1024;

/**
 * Returns the ids as arrays in the order of the primary key: parameters 1 to 3 of every batched statement on
 * records.
 */
export function idColumns(ids: readonly RecordId[]): readonly Buffer[] {
  return [
    intArray(ids.map((id) => id.tenantId)),
    textArray(ids.map((id) => id.namespace)),
    textArray(ids.map((id) => id.key)),
  ];
}

/** The primary key, as `pg` parses it. */
export interface IdRow {
  readonly tenant_id: number;
  readonly namespace: string;
  readonly key: string;
}

/** Returns `recordName` of a row's id. */
export function nameOfRow({ tenant_id, namespace, key }: IdRow): string {
  return recordName({ tenantId: tenant_id, namespace, key });
}

/** Whether the newest claim marks when its effect begins, and has not done so. */
export const IS_PENDING = "coalesce(r.pending_until = r.lease_expires_at, false)";

/** Whether an expired lease of `r` is held at some time: under HOLD or `reclaim_within`, unless the effect has not begun. */
export const HOLDS = `(r.holds_on_lease_expiry and not ${IS_PENDING})`;

/** Whether the record is what the newest claim had taken over: that one was given back, and is the last of the past attempts. */
export const IS_GIVEN_BACK = "coalesce(r.past_attempts -> -1 ->> 'ending' = 'given back', false)";

/** The select list of a record `r` for a RecordRow. A statement adds its own columns, such as the result or the checkpoint. */
export const RECORD_SELECT = `r.tenant_id, r.namespace, r.key, r.state, r.attempt, ${HOLDS} as holds, r.reclaim_within_s, r.claim_id, r.owner,
       r.fencing_token::text as fencing_token,
       encode(r.fingerprint, 'hex') as fingerprint,
       extract(epoch from now()) * 1000 as now_ms,
       extract(epoch from r.first_claimed_at) * 1000 as first_claimed_at_ms,
       extract(epoch from r.claimed_at) * 1000 as claimed_at_ms,
       extract(epoch from r.lease_expires_at) * 1000 as lease_expires_at_ms,
       extract(epoch from r.lease_expires_at - clock_timestamp()) * 1000 as lease_remaining_ms,
       extract(epoch from r.unknown_since) * 1000 as unknown_since_ms,
       case when r.unknown_since is not null then r.past_attempts -> -1 ->> 'owner' end as unknown_owner,
       case when ${IS_GIVEN_BACK} then r.past_attempts -> -1 ->> 'token' end as given_back_token, r.accepts_ambiguous,
       extract(epoch from r.settled_at) * 1000 as settled_at_ms,
       extract(epoch from r.expires_at) * 1000 as expires_at_ms,
       extract(epoch from r.result_expires_at) * 1000 as result_expires_at_ms,
       r.checkpoint_name, r.release_reason, r.result_kind, r.result_content_type,
       encode(r.result_digest, 'hex') as result_digest`;

/** The select list of a row that a statement has written: without the payload, which its caller has. */
export const WRITTEN_SELECT = `${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, null::bytea as result_payload`;

/**
 * A row of `records` as statements return it and `pg` parses it. Times are milliseconds since the Unix epoch
 * as float8, which holds microseconds until the year 2106; `now_ms` is the statement's start. Short bytes are
 * hexadecimal digits.
 *
 * A statement that reads records returns everything. One that writes them returns no payload, and one that lists many records returns no column without a small limit: those columns are
 * null.
 */
export interface RecordRow extends IdRow, pg.QueryResultRow {
  readonly state: number;
  readonly attempt: number;
  readonly holds: boolean;
  /** Null: under HOLD, or without a limit. */
  readonly reclaim_within_s: number | null;
  readonly claim_id: string;
  readonly owner: string;
  readonly fencing_token: string;
  readonly fingerprint: string | null;
  readonly now_ms: number;
  readonly first_claimed_at_ms: number;
  readonly claimed_at_ms: number;
  readonly lease_expires_at_ms: number;
  readonly lease_remaining_ms: number;
  readonly unknown_since_ms: number | null;
  readonly unknown_owner: string | null;
  readonly given_back_token: string | null;
  readonly accepts_ambiguous: boolean;
  readonly settled_at_ms: number | null;
  readonly expires_at_ms: number;
  readonly result_expires_at_ms: number | null;
  readonly checkpoint_name: string | null;
  readonly checkpoint_state: Buffer | null;
  readonly release_reason: string | null;
  readonly result_kind: number | null;
  readonly result_digest: string | null;
  readonly result_content_type: string | null;
  readonly result_metadata: string | null;
  readonly result_payload: Buffer | null;
  /** Stored size of payload and metadata. Returned only by statements that read payloads. */
  readonly result_bytes?: number | null;
  /** The keys that encrypt the result and the checkpoint; null: plain form. Returned with what they encrypt. */
  readonly result_key_id?: number | null;
  readonly checkpoint_key_id?: number | null;
  /** Returned only by `take_over_records`. */
  readonly ended_first_claimed_at_ms?: number | null;
}

/** Returns a row with its encrypted values in plain form; throws if it cannot. */
export type OpenRow = (row: RecordRow) => RecordRow;

/** Returns a row without the values that may be encrypted: for a caller that uses none of them. */
export const withoutValues: OpenRow = (row) => ({
  ...row,
  checkpoint_state: null,
  result_metadata: null,
  result_payload: null,
});

/**
 * Returns the record of a row at the statement's start; undefined if it is forgotten or its retention has
 * ended.
 *
 * @param openRow decrypts the row. Unset: for rows without results whose checkpoint the caller does not use.
 * @param latestMs as DatabaseClock. Unset: the statement's own clock decides whether retention has ended.
 * @throws the error of `openRow`; Refusal DATABASE_UNAVAILABLE if the retention has ended only by a clock that was set.
 */
export function parseRecord(
  sealed: RecordRow,
  openRow?: OpenRow,
  latestMs = Number.POSITIVE_INFINITY,
): LiveRecord | undefined {
  if (sealed.state === STATE.forgotten) return undefined;
  if (sealed.expires_at_ms <= sealed.now_ms) {
    if (sealed.expires_at_ms > latestMs) throw clockMoved();
    return undefined;
  }
  return listedRecord(openRow === undefined ? sealed : openRow(sealed), latestMs);
}

/**
 * Returns the record of a row that its statement has found to be one, by now or by the previous clock of a database whose clock was
 * set, and whose values are not encrypted or not selected.
 *
 * @param latestMs as DatabaseClock.
 */
export function listedRecord(row: RecordRow, latestMs = Number.POSITIVE_INFINITY): LiveRecord {
  return {
    id: { tenantId: row.tenant_id, namespace: row.namespace, key: row.key },
    phase: parsePhase(row, latestMs),
    fencingToken: BigInt(row.fencing_token),
    attempt: row.attempt,
    claimId: row.claim_id,
    owner: row.owner,
    fingerprint: row.fingerprint === null ? undefined : Buffer.from(row.fingerprint, "hex"),
    firstClaimedAtMs: row.first_claimed_at_ms,
    claimedAtMs: row.claimed_at_ms,
    leaseExpiresAtMs: row.lease_expires_at_ms,
    leaseRemainingMs: row.lease_remaining_ms,
    unknown:
      row.unknown_since_ms === null
        ? undefined
        : { owner: row.unknown_owner ?? "", leaseExpiredAtMs: row.unknown_since_ms },
    givenBack: row.given_back_token === null ? undefined : { fencingToken: BigInt(row.given_back_token) },
    acceptedAmbiguous: row.accepts_ambiguous,
    expiresAtMs: row.expires_at_ms,
    checkpoint:
      row.checkpoint_name === null
        ? undefined
        : { name: row.checkpoint_name, state: row.checkpoint_state ?? new Uint8Array(0) },
    endedFirstClaimedAtMs: row.ended_first_claimed_at_ms ?? undefined,
  };
}

/** Leases follow the database's clock as it is. @param latestMs as DatabaseClock. */
function parsePhase(row: RecordRow, latestMs: number): Phase {
  switch (row.state) {
    case STATE.inProgress: {
      const times = { leaseExpiresAtMs: row.lease_expires_at_ms, heldFromMs: heldFromMs(row) };
      const courseMs = latestMs === Number.POSITIVE_INFINITY ? row.now_ms : latestMs - LATEST_AHEAD_MS;
      return unfinishedPhase(times, row.now_ms, Math.max(row.now_ms, courseMs));
    }
    case STATE.released:
      return {
        kind: "released",
        releasedAtMs: required(row, "settled_at_ms"),
        reason: row.release_reason ?? "",
      };
    case STATE.completed:
      return {
        kind: "completed",
        completedAtMs: required(row, "settled_at_ms"),
        ...(row.result_digest === null
          ? { result: EMPTY_RESULT, resultDigest: NO_DIGEST, resultExpiresAtMs: row.expires_at_ms }
          : {
              result: parseResult(row, Math.min(row.now_ms, latestMs)),
              resultDigest: Buffer.from(row.result_digest, "hex"),
              resultExpiresAtMs: required(row, "result_expires_at_ms"),
            }),
      };
    default:
      throw new Error(`unknown records.state ${row.state}`);
  }
}

/** Returns from when an expired lease is held, as `isHeld` does in SQL. */
function heldFromMs({ holds, reclaim_within_s, first_claimed_at_ms }: RecordRow): number {
  if (!holds) return Number.POSITIVE_INFINITY;
  return reclaim_within_s === null
    ? Number.NEGATIVE_INFINITY
    : addMs(first_claimed_at_ms, reclaim_within_s * 1000);
}

/** Returns undefined once the result's retention has ended, even if the sweep has not deleted it yet. */
/** Of a record that its claim completed itself. */
export const NO_DIGEST = new Uint8Array(0);

function parseResult(row: RecordRow, nowMs: number): Result | undefined {
  if (required(row, "result_expires_at_ms") <= nowMs) return undefined;
  return {
    kind: required(row, "result_kind") === RESULT_KIND.failure ? "failure" : "success",
    payload: row.result_payload ?? new AbsentPayload(row.result_bytes ?? 0),
    contentType: row.result_content_type ?? "",
    metadataJson: row.result_metadata ?? "",
  };
}

/** A placeholder for a payload that was not read, nor its metadata. Never leaves the store. */
export class AbsentPayload extends Uint8Array {
  /** Size of payload and metadata in bytes. Infinite: they were read, and did not fit into the reply. */
  readonly storedBytes: number;
  constructor(storedBytes: number) {
    super(0);
    this.storedBytes = storedBytes;
  }
}

function required<Column extends keyof RecordRow>(
  row: RecordRow,
  column: Column,
): NonNullable<RecordRow[Column]> {
  const value = row[column];
  if (value === null || value === undefined)
    throw new Error(`records.${String(column)} is null in state ${row.state}`);
  return value;
}
