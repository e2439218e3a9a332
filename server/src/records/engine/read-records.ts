import type { DatabaseClock } from "../../domain/database-clock.ts";
import { mapSettled, type Settled } from "../../domain/operation.ts";
import { type LiveRecord, type RecordId, recordName } from "../record.ts";
import type { Batcher } from "./batcher.ts";
import type { TenantLimiter } from "./fair-queue.ts";
import { keepForReply } from "./large-results.ts";
import {
  idColumns,
  nameOfRow,
  type OpenRow,
  parseRecord,
  RECORD_SELECT,
  type RecordRow,
} from "./record-row.ts";
import { equalKeys, INLINE_RESULT } from "./record-sql.ts";
import type { RecordValues } from "./record-values.ts";
import { createShardedBatcher, type RecordsDatabase } from "./sharded-batcher.ts";

/**
 * Reads the rows of many keys. A result larger than MAX_INLINE_RESULT_BYTES is not returned, only its size.
 */
const readRecords = {
  name: "read_records",
  text: `
select ${RECORD_SELECT},
       r.checkpoint_state,
       ${INLINE_RESULT}
  from unnest($1::int[], $2::text[], $3::text[]) as i (tenant_id, namespace, key)
  join records r
    on ${equalKeys("r", "i")}`,
};

/** While the rows of one statement are parsed, Postgres runs another. */
const MAX_IN_FLIGHT = 2;

/** Reads records without large results; undefined if the key is unknown or forgotten. */
export type Readings = Batcher<RecordId, LiveRecord | undefined>;

/**
 * Gathers the reads of all callers, and of operations that wrote nothing, into statements. A record whose retention has
 * ended only by a clock that was set is refused as `clockMoved` does, because "there is none" would be taken for certain.
 */
export function createReadings(
  database: RecordsDatabase,
  values: RecordValues,
  limiter: TenantLimiter,
  databaseClock: Pick<DatabaseClock, "latestMs">,
): Readings {
  return createShardedBatcher<RecordId, LiveRecord | undefined>(database, {
    statement: readRecords.name,
    keyOf: (id) => id.key,
    nameOf: recordName,
    tenantOf: (id) => id.tenantId,
    limiter,
    rowForDuplicate: (record) => record,
    createRowConverter() {
      const keep = keepForReply();
      return (record) => record && keep(record);
    },
    maxInFlight: MAX_IN_FLIGHT,
    async execute(run, ids) {
      const rows = await run<RecordRow>(readRecords, idColumns(ids), ids.length);
      return recordsOf(rows, ids, values.openRow, databaseClock.latestMs());
    },
  });
}

/**
 * Returns the record of each id, from rows in any order; undefined if it has no row or is forgotten. A row that
 * `parseRecord` refuses rejects only its own id.
 */
function recordsOf(
  rows: readonly RecordRow[],
  ids: readonly RecordId[],
  openRow?: OpenRow,
  latestMs?: number,
): readonly Settled<LiveRecord | undefined>[] {
  const records = new Map(
    mapSettled(rows, (row) => parseRecord(row, openRow, latestMs)).map((record, i) => [
      nameOfRow(rows[i] as RecordRow),
      record,
    ]),
  );
  return ids.map((id) => records.get(recordName(id)));
}

/** Returns the record that each command wrote, at its index; undefined for a command that wrote nothing. */
export function writtenRecords(
  rows: readonly RecordRow[],
  commands: readonly { readonly id: RecordId }[],
  openRow?: OpenRow,
): readonly Settled<LiveRecord | undefined>[] {
  return recordsOf(
    rows,
    commands.map(({ id }) => id),
    openRow,
  );
}
