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
 * epoch in a float8, which holds microseconds until the year 2106; `now()` is the statement's start. Short bytes travel as
 * hexadecimal digits.
 */
const NUMBERS = {
  tenant_id: "r.tenant_id",
  state: "r.state",
  attempt: "r.attempt",
  holds_on_lease_expiry: "r.holds_on_lease_expiry::int",
  now_ms: "date_part('epoch', now()) * 1000",
  first_claimed_at_ms: "date_part('epoch', r.first_claimed_at) * 1000",
  claimed_at_ms: "date_part('epoch', r.claimed_at) * 1000",
  lease_expires_at_ms: "date_part('epoch', r.lease_expires_at) * 1000",
  lease_remaining_ms: "date_part('epoch', r.lease_expires_at - clock_timestamp()) * 1000",
  settled_at_ms: "date_part('epoch', r.settled_at) * 1000",
  expires_at_ms: "date_part('epoch', r.expires_at) * 1000",
  result_expires_at_ms: "date_part('epoch', r.result_expires_at) * 1000",
  result_kind: "r.result_kind",
} satisfies Record<keyof RecordNumbers, string>;

const TEXTS = {
  namespace: "r.namespace",
  key: "r.key",
  fencing_token: "r.fencing_token::text",
  claim_id: "r.claim_id",
  owner: "r.owner",
  fingerprint: "encode(r.fingerprint, 'hex')",
  checkpoint_name: "r.checkpoint_name",
  release_reason: "r.release_reason",
  result_digest: "encode(r.result_digest, 'hex')",
  result_content_type: "r.result_content_type",
} satisfies Record<keyof RecordTexts, string>;

const COLUMNS = Object.entries({ ...NUMBERS, ...TEXTS })
  .map(([name, value]) => `${value} as ${name}`)
  .join(", ");

const INLINE_PAYLOAD = `
  case when octet_length(r.result_payload) <= ${MAX_INLINE_PAYLOAD_BYTES} then r.result_payload end as result_payload`;

/** Of a row that a statement read. */
export const RECORD_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata, ${INLINE_PAYLOAD}`;

/**
 * Of a row that a statement met, in few columns: Postgres prepares and describes each column that a statement may answer,
 * and `pg` reads its description, whether or not a row comes; for a lone claim that is a tenth of all its time. Arrays of
 * one type take Postgres as long as the columns would; `json_build_object` takes 6 µs more for each row that does come.
 */
export const MET_COLUMNS = `
  array_to_json(array[${Object.values(NUMBERS).join(", ")}]::float8[]) as numbers,
  array_to_json(array[${Object.values(TEXTS).join(", ")}]) as texts,
  r.checkpoint_state, r.result_metadata, ${INLINE_PAYLOAD}`;

/** In place of MET_COLUMNS, under the same names, in a row that tells of many records at once. */
export const NO_MET_COLUMNS = `
  null as numbers, null as texts, null as checkpoint_state, null as result_metadata, null as result_payload`;

/** Of a row that a statement changed: whoever changed it has the payload already. */
export const APPLIED_COLUMNS = `${COLUMNS}, r.checkpoint_state, r.result_metadata,
  null::bytea as result_payload`;

/** Of a row among many, without what has no small bound. */
export const LISTED_COLUMNS = `${COLUMNS}, null::bytea as checkpoint_state, null::text as result_metadata,
  null::bytea as result_payload`;

interface RecordNumbers {
  readonly tenant_id: number;
  readonly state: number;
  readonly attempt: number;
  /** 1 or 0. */
  readonly holds_on_lease_expiry: number;
  readonly now_ms: number;
  readonly first_claimed_at_ms: number;
  readonly claimed_at_ms: number;
  readonly lease_expires_at_ms: number;
  readonly lease_remaining_ms: number;
  readonly settled_at_ms: number | null;
  readonly expires_at_ms: number;
  readonly result_expires_at_ms: number | null;
  readonly result_kind: number | null;
}

interface RecordTexts {
  readonly namespace: string;
  readonly key: string;
  readonly fencing_token: string;
  readonly claim_id: string;
  readonly owner: string;
  readonly fingerprint: string | null;
  readonly checkpoint_name: string | null;
  readonly release_reason: string | null;
  readonly result_digest: string | null;
  readonly result_content_type: string | null;
}

/** What has no small bound. */
interface LargeColumns {
  readonly checkpoint_state: Buffer | null;
  readonly result_metadata: string | null;
  readonly result_payload: Buffer | null;
}

/** RECORD_COLUMNS and APPLIED_COLUMNS as `pg` parses them. */
export interface RecordRow extends RecordNumbers, RecordTexts, LargeColumns, pg.QueryResultRow {}

/** MET_COLUMNS as `pg` parses them. */
export interface MetRow extends LargeColumns, pg.QueryResultRow {
  /** As NUMBERS. */
  readonly numbers: readonly (number | null)[];
  /** As TEXTS. */
  readonly texts: readonly (string | null)[];
}

const NUMBER_NAMES = Object.keys(NUMBERS);
const TEXT_NAMES = Object.keys(TEXTS);

/** The row as if it had come in columns. */
export function rowOfMet({
  numbers,
  texts,
  checkpoint_state,
  result_metadata,
  result_payload,
}: MetRow): RecordRow {
  const row: Record<string, unknown> = { checkpoint_state, result_metadata, result_payload };
  for (let i = 0; i < NUMBER_NAMES.length; i++) row[NUMBER_NAMES[i] as string] = numbers[i];
  for (let i = 0; i < TEXT_NAMES.length; i++) row[TEXT_NAMES[i] as string] = texts[i];
  return row as RecordRow;
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
