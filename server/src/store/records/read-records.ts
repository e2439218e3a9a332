import type { Deadline } from "../../domain/deadline.ts";
import { type LiveRecord, type RecordId, recordName } from "../../domain/record.ts";
import { createReplyRoom } from "../../domain/reply-room.ts";
import { awaitLate, type Settled } from "../../domain/settled.ts";
import { type Batcher, createBatcher } from "../batching/batcher.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { appearsSingle, byKey, ofKey } from "./by-key.ts";
import { type FillPayload, keepForReply } from "./large-payloads.ts";
import { idColumns, nameOfRow } from "./record-ids.ts";
import { parseRecord, RECORD_COLUMNS, type RecordRow } from "./record-row.ts";

const readRecords = {
  name: "read_records",
  text: `
select ${RECORD_COLUMNS}
  from unnest($1::int[], $2::text[], $3::text[]) as i (tenant_id, namespace, key)
  join records r
    on ${byKey()}`,
};

const MAX_IN_FLIGHT = 1;

/** Reads records as they stand, without large payloads; undefined if the key is unknown or forgotten. */
export type Readings = Batcher<RecordId, LiveRecord | undefined>;

/** Gathers reads from all callers, and from the operations that met a record, into statements. */
export function createReadings(pool: Pool, limiter: TenantLimiter): Readings {
  return createBatcher<RecordId, LiveRecord | undefined>({
    nameOf: recordName,
    tenantOf: (id) => id.tenantId,
    limiter,
    follow: (record) => record,
    keeping() {
      const keep = keepForReply();
      return (record) => record && keep(record);
    },
    maxInFlight: MAX_IN_FLIGHT,
    async execute(ids) {
      return recordsOf(ids, await pool.run<RecordRow>(readRecords, idColumns(ids), ids.length));
    },
  });
}

/** What the rows say of each key, wherever its row stands; undefined: nothing, or that it is forgotten. */
export function recordsOf(
  ids: readonly RecordId[],
  rows: readonly RecordRow[],
): readonly (LiveRecord | undefined)[] {
  const records = new Map(rows.map((row) => [nameOfRow(row), parseRecord(row)]));
  return ids.map((id) => records.get(recordName(id)));
}

/** Reads records without touching them, each in its place; undefined if the key is unknown or forgotten. */
export type ReadRecords = (
  ids: readonly RecordId[],
  deadline: Deadline,
) => Promise<readonly Settled<LiveRecord | undefined>[]>;

/** @returns what reads records, batched over all its callers. */
export function createReadRecords(readings: Readings, fillPayload: FillPayload): ReadRecords {
  return async (ids, deadline) => {
    const room = createReplyRoom();
    return await awaitLate(
      await readings.submitAll(ids, deadline),
      (record) => record && fillPayload(record, deadline, room),
    );
  };
}

const findResolvedRecords = {
  name: "find_resolved_records",
  // Those that are asked for are nearly all held: only the others are rows.
  text: `
select i.place::int - 1 as place
  from unnest($1::int[], $2::text[], $3::text[]) with ordinality as i (tenant_id, namespace, key, place)
 where ${appearsSingle("i.tenant_id")}
   and not exists (
       select
         from records r
        where ${ofKey("i")}
          and r.state = 1
          and r.lease_expires_at > now()
          and r.expires_at > now())`,
};

/** Which of many keys, by their places, are not in progress under a running lease: one statement. */
export async function findResolved(pool: Pool, ids: readonly RecordId[]): Promise<ReadonlySet<number>> {
  const rows = await pool.run<{ readonly place: number }>(findResolvedRecords, idColumns(ids));
  return new Set(rows.map(({ place }) => place));
}
