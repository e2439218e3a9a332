import type { Runner } from "../../database/pool.ts";
import {
  type OpenRow,
  parseRecord,
  RECORD_SELECT,
  RESULT_KIND,
  type RecordRow,
  STATE,
} from "../../records/engine/record-row.ts";
import {
  COMPLETE_COLUMNS,
  endedAttempt,
  INLINE_RESULT,
  IS_APPENDED,
  WITH_ROOM,
} from "../../records/engine/record-sql.ts";
import type { RecordValues } from "../../records/engine/record-values.ts";
import type { LiveRecord, RecordId } from "../../records/record.ts";
import { FORGET_COLUMNS, raiseCacheGeneration } from "./forget-records.ts";
import type { ResolveCommand } from "./resolution.ts";

const BY_KEY = "r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text";

/**
 * Returns the row's past attempts with the one that ends, and the record job that ends it; that replaces the attempt if an earlier
 * resolution appended it.
 */
function pastAttempts(reason: string, job: string): string {
  const ended = "(extract(epoch from now() - to_timestamp(0)) * 1000)::text";
  return `case when ${IS_APPENDED} then r.past_attempts - -1
           ${WITH_ROOM}
      || ${endedAttempt({ ended, ending: "'resolved'", reason, job })}`;
}

const lockRecordRow = {
  name: "lock_record",
  text: `
select ${RECORD_SELECT},
       r.checkpoint_state,
       ${INLINE_RESULT}
  from records r
 where ${BY_KEY}
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
 where ${BY_KEY}`,
};

const releaseRecordRow = {
  name: "resolve_as_released",
  text: `
with changed as (
  update records as r set
    state = ${STATE.released},
    settled_at = now(),
    release_reason = $4::text,
    past_attempts = ${pastAttempts("$4::text", "$5::text")}
 where ${BY_KEY}
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, r.result_key_id, r.checkpoint_key_id, null::bytea as result_payload
  from changed r`,
};

const completeRecordRow = {
  name: "resolve_as_completed",
  text: `
with changed as (
  update records as r set
    ${COMPLETE_COLUMNS},
    release_reason = null,
    past_attempts = ${pastAttempts("$10::text", "$11::text")}
  from (select $4::smallint as result_kind, $5::bytea as result_digest, $6::bytea as result_payload,
               $7::text as result_content_type, $8::text as result_metadata, $9::smallint as result_key_id,
               null::int as key_retention_s) i
 where ${BY_KEY}
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
