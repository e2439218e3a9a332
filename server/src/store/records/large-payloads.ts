import type { Deadline } from "../../domain/deadline.ts";
import { type LiveRecord, type RecordId, recordName } from "../../domain/record.ts";
import { createReplyRoom, type ReplyRoom, replyTooLarge, unboundedBytes } from "../../domain/reply-room.ts";
import { createBatcher } from "../batching/batcher.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { bigintArray } from "../sql-arrays.ts";
import { byKey } from "./by-key.ts";
import { type IdRow, idColumns, nameOfRow } from "./record-ids.ts";
import { AbsentPayload } from "./record-row.ts";

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
 *
 * @param room is what the call's reply has left, of which the record takes its part.
 * @throws Refusal RESPONSE_TOO_LARGE if the payload does not fit into it: it is not read.
 */
export type FillPayload = (
  record: LiveRecord,
  deadline: Deadline,
  room: ReplyRoom,
) => Promise<LiveRecord> | undefined;

/** @returns what reads large payloads, batched over all its callers; who asks for the same one limiter it. */
export function createFillPayload(pool: Pool, limiter: TenantLimiter): FillPayload {
  const reads = createBatcher<LargePayload, Buffer | undefined>({
    nameOf: ({ id, fencingToken }) => `${fencingToken}:${recordName(id)}`,
    tenantOf: ({ id }) => id.tenantId,
    limiter,
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
  return (record, deadline, room) => {
    const absent = absentPayload(record);
    if (absent === undefined) {
      room.take(unboundedBytes(record));
      return undefined;
    }
    if (!room.take(unboundedBytes(record) + absent.storedBytes)) throw replyTooLarge();
    return reads.submit(record, deadline).then((payload) => withPayload(record, payload));
  };
}

/**
 * Returns what keeps the records of one call until its last one was read: of their results no more than fit into a reply, in
 * the order in which they come.
 */
export function keepForReply(): (record: LiveRecord) => LiveRecord {
  const room = createReplyRoom();
  return (record) => {
    const { phase } = record;
    if (phase.kind !== "completed" || phase.result === undefined || room.take(unboundedBytes(record)))
      return record;
    const result = { ...phase.result, payload: new AbsentPayload(Number.POSITIVE_INFINITY), metadata: {} };
    return { ...record, phase: { ...phase, result } };
  };
}

/** The record as if it had no result, where its payload did not come along: for whoever has no use for it. */
export function withoutLargePayload(record: LiveRecord): LiveRecord {
  return absentPayload(record) === undefined ? record : withPayload(record, undefined);
}

/** What stands for the record's payload; undefined: it came along, or there is none. */
function absentPayload({ phase }: LiveRecord): AbsentPayload | undefined {
  const payload = phase.kind === "completed" ? phase.result?.payload : undefined;
  return payload instanceof AbsentPayload ? payload : undefined;
}

/** The record with this payload in place of one that did not come along; undefined leaves it without a result. */
export function withPayload(record: LiveRecord, payload: Uint8Array | undefined): LiveRecord {
  const { phase } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return record;
  const result = payload === undefined ? undefined : { ...phase.result, payload };
  return { ...record, phase: { ...phase, result } };
}
