import type { LiveRecord, RecordId, Result } from "../../domain/record.ts";
import type { Resolution } from "../../domain/resolution.ts";
import type { Runner } from "../pool.ts";
import { COMPLETED, metadataJson } from "./complete-records.ts";
import { FORGOTTEN, raiseCacheGeneration } from "./forget-records.ts";
import { APPLIED_COLUMNS, parseRecord, RECORD_COLUMNS, RESULT_KIND, type RecordRow } from "./record-row.ts";

const THE_RECORD = `r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text`;

const lockRecordRow = {
  name: "lock_record",
  text: `select ${RECORD_COLUMNS} from records r where ${THE_RECORD} for update`,
};

/**
 * A record that nobody else changes until the transaction has ended; undefined: there is none. Large payloads do not
 * come along.
 */
export async function lockRecord(transaction: Runner, id: RecordId): Promise<LiveRecord | undefined> {
  const [row] = await transaction.run<RecordRow>(lockRecordRow, parametersOf(id));
  return row && parseRecord(row);
}

const forgetRecordRow = {
  name: "forget_record",
  text: `update records as r set ${FORGOTTEN} where ${THE_RECORD}`,
};

const releaseRecordRow = {
  name: "resolve_as_released",
  text: `
update records as r set
  state = 3,
  settled_at = now(),
  release_reason = $4::text
where ${THE_RECORD}
returning ${APPLIED_COLUMNS}`,
};

const completeRecordRow = {
  name: "resolve_as_completed",
  text: `
update records as r set ${COMPLETED},
    release_reason = null
  from (select $4::smallint as result_kind, $5::bytea as result_digest, $6::bytea as result_payload,
               $7::text as result_content_type, $8::text as result_metadata, null::int as key_retention_s) i
 where ${THE_RECORD}
returning ${APPLIED_COLUMNS}`,
};

/**
 * Resolves a record that the transaction has locked.
 *
 * @returns the record as it became, without the payload of its result; undefined once forgotten.
 */
export async function resolveRecord(
  transaction: Runner,
  id: RecordId,
  resolution: Resolution,
  reason: string,
): Promise<LiveRecord | undefined> {
  switch (resolution.kind) {
    case "forget":
      await transaction.run(forgetRecordRow, parametersOf(id));
      // Last: whoever claims for the tenant does not wait for its row, but other administrators do.
      await raiseCacheGeneration(transaction, id.tenantId);
      return undefined;
    case "release":
      return changed(await transaction.run(releaseRecordRow, [...parametersOf(id), reason]));
    case "complete": {
      const parameters = [
        ...parametersOf(id),
        ...resultParameters(resolution.result, resolution.resultDigest),
      ];
      return changed(await transaction.run(completeRecordRow, parameters));
    }
  }
}

function parametersOf({ tenantId, namespace, key }: RecordId): readonly unknown[] {
  return [tenantId, namespace, key];
}

function resultParameters(result: Result, digest: Uint8Array): readonly unknown[] {
  const { kind, payload, contentType, metadata } = result;
  return [RESULT_KIND[kind], digest, payload, contentType || null, metadataJson(metadata) ?? null];
}

function changed([row]: readonly RecordRow[]): LiveRecord {
  const record = row && parseRecord(row);
  if (record === undefined) throw new Error("a record that was locked is gone");
  return record;
}
