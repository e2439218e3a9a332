import type pg from "pg";
import {
  type Checkpoint,
  type LiveRecord,
  type Phase,
  type Result,
  unfinishedPhase,
} from "../../domain/record.ts";
import type { IdRow } from "./record-ids.ts";

/** `records.state`. */
export const STATE = { forgotten: 0, inProgress: 1, completed: 2, released: 3 } as const;

/** `records.result_kind`. */
export const RESULT_KIND = { success: 1, failure: 2 } as const;

/**
 * A larger payload is read alone (`large-payloads.ts`), so that a statement for hundreds of keys cannot bring back
 * hundreds of megabytes. The default max_result_bytes, so that few tenants ever pay for the second read.
 */
export const MAX_INLINE_PAYLOAD_BYTES = 64 * 1024;

/**
 * What every statement answers about a row `r`, and how it was seen. Instants travel as milliseconds since the Unix
 * epoch in a float8, which holds microseconds until the year 2106; `now()` is the statement's start. Short bytes travel as
 * hexadecimal digits.
 */
const COLUMNS = `
  r.tenant_id, r.namespace, r.key, r.state, r.attempt, r.holds_on_lease_expiry, r.claim_id, r.owner,
  r.fencing_token::text as fencing_token,
  encode(r.fingerprint, 'hex') as fingerprint,
  date_part('epoch', now()) * 1000 as now_ms,
  date_part('epoch', r.first_claimed_at) * 1000 as first_claimed_at_ms,
  date_part('epoch', r.claimed_at) * 1000 as claimed_at_ms,
  date_part('epoch', r.lease_expires_at) * 1000 as lease_expires_at_ms,
  date_part('epoch', r.lease_expires_at - clock_timestamp()) * 1000 as lease_remaining_ms,
  date_part('epoch', r.settled_at) * 1000 as settled_at_ms,
  date_part('epoch', r.expires_at) * 1000 as expires_at_ms,
  date_part('epoch', r.result_expires_at) * 1000 as result_expires_at_ms,
  r.checkpoint_name, r.release_reason, r.result_kind, r.result_content_type,
  encode(r.result_digest, 'hex') as result_digest`;

const INLINE_PAYLOAD = `
  case when octet_length(r.result_payload) <= ${MAX_INLINE_PAYLOAD_BYTES} then r.result_payload end as result_payload,
  octet_length(r.result_payload) as result_payload_bytes`;

/** Of a row that a statement read. */
export const RECORD_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata, ${INLINE_PAYLOAD}`;

/** Of a row that a statement changed: whoever changed it has the payload already. */
export const APPLIED_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata,
  null::bytea as result_payload`;

/** Of a row among many, without what has no small bound. */
export const LISTED_COLUMNS = `${COLUMNS}, null::bytea as checkpoint_state, null::text as result_metadata,
  null::bytea as result_payload`;

/** RECORD_COLUMNS, APPLIED_COLUMNS and LISTED_COLUMNS as `pg` parses them. */
export interface RecordRow extends IdRow, pg.QueryResultRow {
  readonly state: number;
  readonly attempt: number;
  readonly holds_on_lease_expiry: boolean;
  readonly claim_id: string;
  readonly owner: string;
  readonly fencing_token: string;
  readonly fingerprint: string | null;
  readonly now_ms: number;
  readonly first_claimed_at_ms: number;
  readonly claimed_at_ms: number;
  readonly lease_expires_at_ms: number;
  readonly lease_remaining_ms: number;
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
  /** Of RECORD_COLUMNS only. */
  readonly result_payload_bytes?: number | null;
}

/** The record that a row stands for at the statement's moment; undefined if it is forgotten or its retention ended. */
export function parseRecord(row: RecordRow): LiveRecord | undefined {
  if (row.state === STATE.forgotten || row.expires_at_ms <= row.now_ms) return undefined;
  return {
    id: { tenantId: row.tenant_id, namespace: row.namespace, key: row.key },
    phase: parsePhase(row),
    fencingToken: BigInt(row.fencing_token),
    attempt: row.attempt,
    claimId: row.claim_id,
    owner: row.owner,
    fingerprint: row.fingerprint === null ? undefined : Buffer.from(row.fingerprint, "hex"),
    firstClaimedAtMs: row.first_claimed_at_ms,
    claimedAtMs: row.claimed_at_ms,
    leaseExpiresAtMs: row.lease_expires_at_ms,
    leaseRemainingMs: row.lease_remaining_ms,
    expiresAtMs: row.expires_at_ms,
    checkpoint: parseCheckpoint(row),
  };
}

function parsePhase(row: RecordRow): Phase {
  switch (row.state) {
    case STATE.inProgress:
      return unfinishedPhase(
        row.lease_expires_at_ms > row.now_ms,
        row.holds_on_lease_expiry ? "HOLD" : "RECLAIM",
      );
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
        result: parseResult(row),
        resultDigest: Buffer.from(required(row, "result_digest"), "hex"),
        resultExpiresAtMs: required(row, "result_expires_at_ms"),
      };
    default:
      throw new Error(`records.state ${row.state}`);
  }
}

/** Undefined once its retention has ended, whether the sweep has come by or not. */
function parseResult(row: RecordRow): Result | undefined {
  if (required(row, "result_expires_at_ms") <= row.now_ms) return undefined;
  return {
    kind: required(row, "result_kind") === RESULT_KIND.failure ? "failure" : "success",
    payload: row.result_payload ?? new AbsentPayload(row.result_payload_bytes ?? 0),
    contentType: row.result_content_type ?? "",
    metadata: row.result_metadata === null ? {} : JSON.parse(row.result_metadata),
  };
}

/** Stands for a payload that did not come along; never leaves the store. */
export class AbsentPayload extends Uint8Array {
  /** How many bytes reading it would add; infinite: it was there, and did not fit into the reply. */
  readonly storedBytes: number;
  constructor(storedBytes: number) {
    super(0);
    this.storedBytes = storedBytes;
  }
}

function parseCheckpoint(row: RecordRow): Checkpoint | undefined {
  if (row.checkpoint_name === null) return undefined;
  return { name: row.checkpoint_name, state: row.checkpoint_state ?? new Uint8Array(0) };
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
