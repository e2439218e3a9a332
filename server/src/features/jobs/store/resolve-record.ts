import type { LiveRecord, RecordId } from "../../../core/domain/record.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  type OpenRow,
  parseRecord,
  RECORD_SELECT,
  RESULT_KIND,
  type RecordRow,
} from "../../../core/store/records/record-row.ts";
import type { RecordValues } from "../../../core/store/records/record-values.ts";
import type { ResolveCommand } from "../resolution.ts";
import { FORGET_COLUMNS, raiseCacheGeneration } from "./forget-records.ts";

const lockRecordRow = {
  name: "lock_record",
  text: `
select ${RECORD_SELECT},
       r.checkpoint_state,
       case when octet_length(r.result_payload) + coalesce(octet_length(r.result_metadata), 0) <= 65536
            then r.result_metadata end as result_metadata,
       r.result_key_id, r.checkpoint_key_id,
       case when octet_length(r.result_payload) + coalesce(octet_length(r.result_metadata), 0) <= 65536
            then r.result_payload end as result_payload,
       octet_length(r.result_payload) + coalesce(octet_length(r.result_metadata), 0) as result_bytes
  from records r
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
   for update`,
};

/**
 * Reads a record and locks its row until the transaction ends; undefined if there is no record. Large
 * results are not read.
 *
 * @param openRow decrypts the row, or leaves its values out.
 * @param latestMs as DatabaseClock.
 * @throws Refusal RECORD_UNREADABLE, as `openRow`; DATABASE_UNAVAILABLE if the retention has ended only by a clock that was set.
 */
export async function lockRecord(
  transaction: Runner,
  id: RecordId,
  openRow: OpenRow,
  latestMs?: number,
): Promise<LiveRecord | undefined> {
  const [row] = await transaction.run<RecordRow>(lockRecordRow, keyParameters(id));
  return row && parseRecord(row, openRow, latestMs);
}

/** Leaves the row as `forget_records` does. */
const forgetRecordRow = {
  name: "forget_record",
  text: `
update records as r set
    ${FORGET_COLUMNS}
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text`,
};

/**
 * Appends the attempt that ends, as `take_over_records` does, with the record job that ends it; replaces it if an earlier
 * resolution appended it.
 */
const releaseRecordRow = {
  name: "resolve_as_released",
  text: `
with changed as (
  update records as r set
    state = 3 /* released */,
    settled_at = now(),
    release_reason = $4::text,
    past_attempts =
      case when r.past_attempts -> -1 ->> 'token' = r.fencing_token::text then r.past_attempts - -1
           when jsonb_array_length(r.past_attempts) >= 16 then r.past_attempts - 0
           else coalesce(r.past_attempts, '[]') end
      || jsonb_strip_nulls(jsonb_object(
           array['attempt', 'token', 'owner', 'claimed', 'checkpoint', 'ended', 'ending', 'reason', 'job'],
           array[r.attempt::text, r.fencing_token::text, r.owner,
                 trim_scale(extract(epoch from r.claimed_at - to_timestamp(0)) * 1000)::text, r.checkpoint_name,
                 (extract(epoch from now() - to_timestamp(0)) * 1000)::text, 'resolved', left($4::text, 128), $5::text]))
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, r.result_key_id, r.checkpoint_key_id, null::bytea as result_payload
  from changed r`,
};

/** Sets the columns that `complete_records` sets, and appends the attempt as `resolve_as_released` does. */
const completeRecordRow = {
  name: "resolve_as_completed",
  text: `
with changed as (
  update records as r set
    state = 2 /* completed */,
    settled_at = now(),
    expires_at = now() + coalesce(i.key_retention_s, r.key_retention_s) * interval '1 second',
    result_expires_at = now() + least(
      coalesce(i.key_retention_s, r.key_retention_s),
      case when i.result_kind = 1 /* success */ then r.result_retention_s else r.failure_retention_s end)
      * interval '1 second',
    result_kind = i.result_kind,
    result_digest = i.result_digest,
    result_payload = i.result_payload,
    result_content_type = i.result_content_type,
    result_key_id = i.result_key_id,
    result_metadata = i.result_metadata,
    release_reason = null,
    past_attempts =
      case when r.past_attempts -> -1 ->> 'token' = r.fencing_token::text then r.past_attempts - -1
           when jsonb_array_length(r.past_attempts) >= 16 then r.past_attempts - 0
           else coalesce(r.past_attempts, '[]') end
      || jsonb_strip_nulls(jsonb_object(
           array['attempt', 'token', 'owner', 'claimed', 'checkpoint', 'ended', 'ending', 'reason', 'job'],
           array[r.attempt::text, r.fencing_token::text, r.owner,
                 trim_scale(extract(epoch from r.claimed_at - to_timestamp(0)) * 1000)::text, r.checkpoint_name,
                 (extract(epoch from now() - to_timestamp(0)) * 1000)::text, 'resolved', left($10::text, 128), $11::text]))
  from (select $4::smallint as result_kind, $5::bytea as result_digest, $6::bytea as result_payload,
               $7::text as result_content_type, $8::text as result_metadata, $9::smallint as result_key_id,
               null::int as key_retention_s) i
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, r.result_key_id, r.checkpoint_key_id, null::bytea as result_payload
  from changed r`,
};

/**
 * Resolves a record that the transaction has locked.
 *
 * @returns the changed record, without the payload of its result; undefined if it was forgotten.
 * @throws Refusal RECORD_UNREADABLE, as `RecordValues.openRow`.
 */
export async function resolveRecord(
  transaction: Runner,
  command: ResolveCommand,
  encryption: RecordValues,
): Promise<LiveRecord | undefined> {
  const row = await resolveOneOfMany(transaction, command, encryption);
  if (row === undefined) {
    // Last, so that other administrators wait as briefly as possible for the tenant's row. Claims do not
    // wait for it.
    await raiseCacheGeneration(transaction, command.id.tenantId);
    return undefined;
  }
  const record = parseRecord(row, encryption.openRow);
  if (record === undefined) throw new Error("a locked record has disappeared");
  return record;
}

/**
 * Does the same for one of several records. It decrypts nothing, and does not raise the tenant's cache
 * generation: the caller does so once, after the last record, if records are forgotten.
 *
 * @returns the changed row; undefined if its record was forgotten.
 */
export async function resolveOneOfMany(
  transaction: Runner,
  { id, resolution, reason, recordJob }: ResolveCommand,
  encryption: RecordValues,
): Promise<RecordRow | undefined> {
  const job = recordJob?.toString() ?? null;
  switch (resolution.kind) {
    case "forget":
      await transaction.run(forgetRecordRow, keyParameters(id));
      return undefined;
    case "release":
      return onlyRow(await transaction.run(releaseRecordRow, [...keyParameters(id), reason, job]));
    case "complete": {
      const { result, resultDigest } = resolution;
      const { digest, payload, metadata } = encryption.storedResult(id, {
        digest: resultDigest,
        payload: result.payload,
        metadata: result.metadataJson || undefined,
      });
      const parameters = [
        ...keyParameters(id),
        ...[RESULT_KIND[result.kind], digest, payload, result.contentType || null, metadata ?? null],
        encryption.keyId,
        ...[reason, job],
      ];
      return onlyRow(await transaction.run(completeRecordRow, parameters));
    }
  }
}

function keyParameters({ tenantId, namespace, key }: RecordId): readonly unknown[] {
  return [tenantId, namespace, key];
}

function onlyRow([row]: readonly RecordRow[]): RecordRow {
  if (row === undefined) throw new Error("a locked record has disappeared");
  return row;
}
