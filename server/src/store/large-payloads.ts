import type { Deadline } from "../domain/deadline.ts";
import { type LiveRecord, type RecordId, recordName } from "../domain/record.ts";
import { createBatcher } from "./batcher.ts";
import { byKey } from "./by-key.ts";
import type { Pool } from "./pool.ts";
import { type IdRow, idColumns, nameOfRow } from "./record-ids.ts";
import { NOT_INLINE } from "./record-row.ts";
import { bigintArray } from "./sql-arrays.ts";
import type { TenantShares } from "./tenant-shares.ts";

/**
 * Payloads that were too large to come along with the other records of a batch (`MAX_INLINE_PAYLOAD_BYTES`). They are
 * read after the batch, a few at a time: no other call waits for them, and what is under way is bounded by payloads, not
 * by batches.
 */
const readPayloads = {
  name: "read_payloads",
  text: `
select r.tenant_id, r.namespace, r.key, r.result_payload
  from unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) as i (tenant_id, namespace, key, fencing_token)
  join records r
    on ${byKey()}
 where r.fencing_token = i.fencing_token
   and r.state = 2`,
};

interface PayloadRow extends IdRow {
  readonly result_payload: Buffer | null;
}

const MAX_IN_FLIGHT = 2;
/** What the largest policy allows; with the batcher's own bound, four of them travel in a statement. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;

interface LargePayload {
  readonly id: RecordId;
  readonly fencingToken: bigint;
}

/**
 * Answers a record with its payload, where that did not come along: undefined otherwise. A result is immutable, so a second
 * statement reads the same one, or, if it was forgotten in between, none.
 */
export type FillPayload = (record: LiveRecord, deadline: Deadline) => Promise<LiveRecord> | undefined;

/** @returns what reads large payloads, batched over all its callers; who asks for the same one shares it. */
export function createFillPayload(pool: Pool, shares: TenantShares): FillPayload {
  const reads = createBatcher<LargePayload, Buffer | undefined>({
    nameOf: ({ id, fencingToken }) => `${fencingToken}:${recordName(id)}`,
    tenantOf: ({ id }) => id.tenantId,
    shares,
    bytesOf: () => MAX_PAYLOAD_BYTES,
    follow: (payload) => payload,
    maxInFlight: MAX_IN_FLIGHT,
    async execute(wanted) {
      const columns = [
        ...idColumns(wanted.map(({ id }) => id)),
        bigintArray(wanted.map(({ fencingToken }) => fencingToken)),
      ];
      const byName = new Map<string, Buffer>();
      for (const row of await pool.run<PayloadRow>(readPayloads, columns, wanted.length)) {
        if (row.result_payload !== null) byName.set(nameOfRow(row), row.result_payload);
      }
      return wanted.map(({ id }) => byName.get(recordName(id)));
    },
  });
  return (record, deadline) =>
    lacksPayload(record)
      ? reads.submit(record, deadline).then((payload) => withPayload(record, payload))
      : undefined;
}

/** The record as if it had no result, where its payload did not come along: for whoever has no use for it. */
export function withoutLargePayload(record: LiveRecord): LiveRecord {
  return lacksPayload(record) ? withPayload(record, undefined) : record;
}

/** Whether the record has a payload that did not come along. */
function lacksPayload({ phase }: LiveRecord): boolean {
  return phase.kind === "completed" && phase.result?.payload === NOT_INLINE;
}

/** The record with this payload in place of one that did not come along; undefined leaves it without a result. */
export function withPayload(record: LiveRecord, payload: Uint8Array | undefined): LiveRecord {
  const { phase } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return record;
  const result = payload === undefined ? undefined : { ...phase.result, payload };
  return { ...record, phase: { ...phase, result } };
}
