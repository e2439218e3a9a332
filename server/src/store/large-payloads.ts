import type { LiveRecord } from "../domain/record.ts";
import type { Pool } from "./pool.ts";
import { MAX_INLINE_PAYLOAD_BYTES, type RecordRow } from "./record-row.ts";

const readPayload = {
  name: "read_payload",
  text: `
select r.result_payload
  from records r
 where r.tenant_id = $1::int
   and r.namespace = $2::text
   and r.key = $3::text
   and r.fencing_token = $4::bigint
   and r.state = 2`,
};

/**
 * The record with its payload, if that was too large to come along with the others: read alone, so that memory is
 * bounded by payloads, not by batches. A result is immutable, so a second statement reads the same one, or, if it was
 * forgotten in between, none.
 */
export async function withLargePayload(
  pool: Pool,
  row: RecordRow,
  record: LiveRecord | undefined,
): Promise<LiveRecord | undefined> {
  if (record?.phase.kind !== "completed" || record.phase.result === undefined) return record;
  if (row.result_bytes === null || row.result_bytes <= MAX_INLINE_PAYLOAD_BYTES) return record;
  const { tenantId, namespace, key } = record.id;
  const parameters = [tenantId, namespace, key, row.fencing_token];
  const [found] = await pool.run<{ result_payload: Buffer | null }>(readPayload, parameters);
  const payload = found?.result_payload;
  const result = payload ? { ...record.phase.result, payload } : undefined;
  return { ...record, phase: { ...record.phase, result } };
}
