import type pg from "pg";
import {
  type Checkpoint,
  type LiveRecord,
  type Phase,
  type Result,
  unfinishedPhase,
} from "../domain/record.ts";

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
 * epoch in a float8, which holds microseconds exactly for the next two centuries; `now()` is the statement's start.
 */
const COLUMNS = `
  r.tenant_id, r.namespace, r.key, r.fencing_token, r.state, r.attempt, r.holds_on_lease_expiry,
  date_part('epoch', now()) * 1000 as now_ms,
  date_part('epoch', r.first_claimed_at) * 1000 as first_claimed_at_ms,
  date_part('epoch', r.claimed_at) * 1000 as claimed_at_ms,
  date_part('epoch', r.lease_expires_at) * 1000 as lease_expires_at_ms,
  date_part('epoch', r.lease_expires_at - clock_timestamp()) * 1000 as lease_remaining_ms,
  date_part('epoch', r.settled_at) * 1000 as settled_at_ms,
  date_part('epoch', r.expires_at) * 1000 as expires_at_ms,
  date_part('epoch', r.result_expires_at) * 1000 as result_expires_at_ms,
  r.claim_id, r.owner, r.fingerprint, r.checkpoint_name, r.release_reason,
  r.result_kind, r.result_digest, r.result_content_type, octet_length(r.result_payload) as result_bytes`;

/** Of a row that a statement met. */
export const RECORD_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata,
  case when octet_length(r.result_payload) <= ${MAX_INLINE_PAYLOAD_BYTES} then r.result_payload end as result_payload`;

/** In place of RECORD_COLUMNS, under the same names, in a row that tells of many records at once. */
export const NO_RECORD_COLUMNS = `
  null as tenant_id, null as namespace, null as key, null as fencing_token, null as state, null as attempt,
  null as holds_on_lease_expiry, null as now_ms, null as first_claimed_at_ms, null as claimed_at_ms,
  null as lease_expires_at_ms, null as lease_remaining_ms, null as settled_at_ms, null as expires_at_ms,
  null as result_expires_at_ms, null as claim_id, null as owner, null as fingerprint, null as checkpoint_name,
  null as release_reason, null as result_kind, null as result_digest, null as result_content_type,
  null as result_bytes, null as checkpoint_state, null as result_metadata, null as result_payload`;

/** Of a row that a statement changed: whoever changed it has the payload already. */
export const APPLIED_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata,
  null::bytea as result_payload`;

/** Of a row among many, without what has no small bound. */
export const LISTED_COLUMNS = `${COLUMNS}, null::bytea as checkpoint_state, null::text as result_metadata,
  null::bytea as result_payload`;

/** RECORD_COLUMNS and APPLIED_COLUMNS as `pg` parses them. */
export interface RecordRow extends pg.QueryResultRow {
  readonly tenant_id: number;
  readonly namespace: string;
  readonly key: string;
  readonly fencing_token: string;
  readonly state: number;
  readonly attempt: number;
  readonly holds_on_lease_expiry: boolean;
  readonly now_ms: number;
  readonly first_claimed_at_ms: number;
  readonly claimed_at_ms: number;
  readonly lease_expires_at_ms: number;
  readonly lease_remaining_ms: number;
  readonly settled_at_ms: number | null;
  readonly expires_at_ms: number;
  readonly result_expires_at_ms: number | null;
  readonly claim_id: string;
  readonly owner: string;
  readonly fingerprint: Buffer | null;
  readonly checkpoint_name: string | null;
  readonly checkpoint_state: Buffer | null;
  readonly release_reason: string | null;
  readonly result_kind: number | null;
  readonly result_digest: Buffer | null;
  readonly result_content_type: string | null;
  readonly result_metadata: string | null;
  readonly result_bytes: number | null;
  readonly result_payload: Buffer | null;
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
    fingerprint: row.fingerprint ?? undefined,
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
        resultDigest: required(row, "result_digest"),
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
    payload: row.result_payload ?? NOT_INLINE,
    contentType: row.result_content_type ?? "",
    metadata: row.result_metadata === null ? {} : JSON.parse(row.result_metadata),
  };
}

/** Stands for a payload that did not come along; never leaves the store. */
export const NOT_INLINE: Uint8Array = new Uint8Array(0);

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
