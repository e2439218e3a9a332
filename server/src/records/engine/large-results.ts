import { bigintArray } from "../../database/sql-arrays.ts";
import { type Deadline, mapSettled } from "../../domain/operation.ts";
import { type LiveRecord, type RecordId, type Result, recordName } from "../record.ts";
import { createReplyRoom, type ReplyRoom, replyTooLarge, unboundedBytes } from "../reply-room.ts";
import type { TenantLimiter } from "./fair-queue.ts";
import { AbsentPayload, type IdRow, idColumns, nameOfRow, type RecordRow, STATE } from "./record-row.ts";
import { equalKeys } from "./record-sql.ts";
import type { RecordValues } from "./record-values.ts";
import { createShardedBatcher, type RecordsDatabase } from "./sharded-batcher.ts";

/**
 * Reads results that are too large to be read with their records (`MAX_INLINE_RESULT_BYTES`). They are read
 * after the records, a few at a time: no other call waits for them, and memory is bounded by results in
 * flight, not by batches.
 */
const readPayloads = {
  name: "read_payloads",
  text: `
select r.tenant_id, r.namespace, r.key, r.result_key_id, r.result_metadata, r.result_payload
  from unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) as i (tenant_id, namespace, key, fencing_token)
  join records r
    on ${equalKeys("r", "i")}
 where r.fencing_token = i.fencing_token
   and r.state = ${STATE.completed}`,
};

type ResultRow = IdRow & Pick<RecordRow, "result_key_id" | "result_metadata" | "result_payload">;

const MAX_IN_FLIGHT = 2;

interface LargeResult {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  /** Stored size of its payload and metadata. */
  readonly bytes: number;
}

/** The parts of a result that are read separately. */
type ReadResult = Pick<Result, "payload" | "metadataJson">;

/**
 * Returns the record with its result, or undefined if the record has it already. A result is immutable, so
 * the later statement reads the same one, or none if the record was forgotten in between.
 *
 * @param room counts the bytes that are left in the call's reply; the record takes its bytes from it.
 * @throws Refusal RESPONSE_TOO_LARGE if the result does not fit: it is not read; RECORD_UNREADABLE if it cannot
 *   be decrypted.
 */
export type FillResult = (
  record: LiveRecord,
  deadline: Deadline,
  room: ReplyRoom,
) => Promise<LiveRecord> | undefined;

/**
 * Returns a function that reads large results, batched over all its callers: callers that read the same one
 * share it.
 */
export function createFillResult(
  database: RecordsDatabase,
  values: RecordValues,
  limiter: TenantLimiter,
): FillResult {
  const reads = createShardedBatcher<LargeResult, ReadResult | undefined>(database, {
    statement: readPayloads.name,
    keyOf: ({ id }) => id.key,
    nameOf: ({ id, fencingToken }) => `${fencingToken}:${recordName(id)}`,
    tenantOf: ({ id }) => id.tenantId,
    limiter,
    bytesOf: ({ bytes }) => bytes,
    rowForDuplicate: (result) => result,
    maxInFlight: MAX_IN_FLIGHT,
    async execute(run, wanted) {
      const columns = [
        ...idColumns(wanted.map(({ id }) => id)),
        bigintArray(wanted.map(({ fencingToken }) => fencingToken)),
      ];
      const byName = new Map<string, ResultRow>();
      for (const row of await run<ResultRow>(readPayloads, columns, wanted.length)) {
        byName.set(nameOfRow(row), row);
      }
      return mapSettled(wanted, ({ id }) => {
        const sealed = byName.get(recordName(id));
        if (sealed === undefined || sealed.result_payload === null) return undefined;
        const { result_payload: payload, result_metadata: metadataJson } = values.openRow(sealed);
        return payload === null ? undefined : { payload, metadataJson: metadataJson ?? "" };
      });
    },
  });
  return (record, deadline, room) => {
    const absent = absentPayload(record);
    if (absent === undefined) {
      room.take(unboundedBytes(record));
      return undefined;
    }
    if (!room.take(unboundedBytes(record) + absent.storedBytes)) throw replyTooLarge();
    const { id, fencingToken } = record;
    return reads
      .submit({ id, fencingToken, bytes: absent.storedBytes }, deadline)
      .then((result) => withResult(record, result));
  };
}

/**
 * Returns a function that converts the records of one call before they are kept until its last one was read.
 * It keeps results only as far as they fit into one reply, in the order in which they arrive.
 */
export function keepForReply(): (record: LiveRecord) => LiveRecord {
  const room = createReplyRoom();
  return (record) => {
    const { phase } = record;
    if (phase.kind !== "completed" || phase.result === undefined || room.take(unboundedBytes(record)))
      return record;
    return withResult(record, { payload: new AbsentPayload(Number.POSITIVE_INFINITY), metadataJson: "" });
  };
}

/** Removes the result of a record whose payload was not read, for callers that do not need it. */
export function withoutLargeResult(record: LiveRecord): LiveRecord {
  return absentPayload(record) === undefined ? record : withResult(record, undefined);
}

/** Returns the placeholder of the record's payload; undefined if the payload was read, or there is none. */
function absentPayload({ phase }: LiveRecord): AbsentPayload | undefined {
  const payload = phase.kind === "completed" ? phase.result?.payload : undefined;
  return payload instanceof AbsentPayload ? payload : undefined;
}

/** Returns the record with these parts instead of the placeholder; `undefined` removes the result. */
export function withResult(record: LiveRecord, read: ReadResult | undefined): LiveRecord {
  const { phase } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return record;
  const result = read === undefined ? undefined : { ...phase.result, ...read };
  return { ...record, phase: { ...phase, result } };
}
