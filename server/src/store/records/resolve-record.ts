import type { LiveRecord, RecordId, Result } from "../../domain/record.ts";
import type { Resolution } from "../../domain/resolution.ts";
import type { Runner } from "../pool.ts";
import { metadataJson } from "./complete-records.ts";
import { raiseCacheGeneration } from "./forget-records.ts";
import { parseRecord, RESULT_KIND, type RecordRow } from "./record-row.ts";

const lockRecordRow = {
  name: "lock_record",
  text: `
select r.tenant_id, r.namespace, r.key, r.state, r.attempt, r.holds_on_lease_expiry, r.claim_id, r.owner,
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
       encode(r.result_digest, 'hex') as result_digest,
       r.checkpoint_state, r.result_metadata,
       case when octet_length(r.result_payload) <= 65536 then r.result_payload end as result_payload,
       octet_length(r.result_payload) as result_payload_bytes
  from records r
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
   for update`,
};

/**
 * Reads a record and locks its row until the transaction ends; undefined if there is no record. Large
 * payloads are not read.
 */
export async function lockRecord(transaction: Runner, id: RecordId): Promise<LiveRecord | undefined> {
  const [row] = await transaction.run<RecordRow>(lockRecordRow, keyParameters(id));
  return row && parseRecord(row);
}

/** Leaves the row as `forget_records` does. */
const forgetRecordRow = {
  name: "forget_record",
  text: `
update records as r set
    state = 0 /* forgotten */,
    expires_at = now(),
    sweep_at = now() + interval '2 minutes',
    claim_id = '',
    owner = '',
    fingerprint = null,
    checkpoint_name = null,
    checkpoint_state = null,
    settled_at = null,
    release_reason = null,
    result_expires_at = null,
    result_kind = null,
    result_digest = null,
    result_content_type = null,
    result_metadata = null,
    result_payload = null
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text`,
};

const releaseRecordRow = {
  name: "resolve_as_released",
  text: `
update records as r set
    state = 3 /* released */,
    settled_at = now(),
    release_reason = $4::text
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
returning
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
       encode(r.result_digest, 'hex') as result_digest,
       r.checkpoint_state, r.result_metadata, null::bytea as result_payload`,
};

/** Sets the columns that `complete_records` sets. */
const completeRecordRow = {
  name: "resolve_as_completed",
  text: `
update records as r set
    state = 2 /* completed */,
    settled_at = now(),
    expires_at = now() + coalesce(i.key_retention_s, r.key_retention_s) * interval '1 second',
    result_expires_at = now() + least(
      coalesce(i.key_retention_s, r.key_retention_s),
      case i.result_kind when 1 /* success */ then r.result_retention_s else r.failure_retention_s end)
      * interval '1 second',
    result_kind = i.result_kind,
    result_digest = i.result_digest,
    result_payload = i.result_payload,
    result_content_type = i.result_content_type,
    result_metadata = i.result_metadata,
    release_reason = null
  from (select $4::smallint as result_kind, $5::bytea as result_digest, $6::bytea as result_payload,
               $7::text as result_content_type, $8::text as result_metadata, null::int as key_retention_s) i
 where r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text
returning
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
       encode(r.result_digest, 'hex') as result_digest,
       r.checkpoint_state, r.result_metadata, null::bytea as result_payload`,
};

/**
 * Resolves a record that the transaction has locked.
 *
 * @returns the changed record, without the payload of its result; undefined if it was forgotten.
 */
export async function resolveRecord(
  transaction: Runner,
  id: RecordId,
  resolution: Resolution,
  reason: string,
): Promise<LiveRecord | undefined> {
  switch (resolution.kind) {
    case "forget":
      await transaction.run(forgetRecordRow, keyParameters(id));
      // Last, so that other administrators wait as briefly as possible for the tenant's row. Claims do not
      // wait for it.
      await raiseCacheGeneration(transaction, id.tenantId);
      return undefined;
    case "release":
      return changedRecord(await transaction.run(releaseRecordRow, [...keyParameters(id), reason]));
    case "complete": {
      const parameters = [
        ...keyParameters(id),
        ...resultParameters(resolution.result, resolution.resultDigest),
      ];
      return changedRecord(await transaction.run(completeRecordRow, parameters));
    }
  }
}

function keyParameters({ tenantId, namespace, key }: RecordId): readonly unknown[] {
  return [tenantId, namespace, key];
}

function resultParameters(result: Result, digest: Uint8Array): readonly unknown[] {
  const { kind, payload, contentType, metadata } = result;
  return [RESULT_KIND[kind], digest, payload, contentType || null, metadataJson(metadata) ?? null];
}

function changedRecord([row]: readonly RecordRow[]): LiveRecord {
  const record = row && parseRecord(row);
  if (record === undefined) throw new Error("a locked record has disappeared");
  return record;
}
