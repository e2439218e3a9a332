import type { DatabaseClock } from "../../core/domain/database-clock.ts";
import { type Deadline, mapSettled, type Settled, settlePending } from "../../core/domain/operation.ts";
import { Refusal } from "../../core/domain/refusal.ts";
import type { Runner } from "../../core/store/pool.ts";
import { type LiveRecord, type RecordId, recordName } from "../record.ts";
import { createReplyRoom } from "../reply-room.ts";
import type { Batcher } from "./batcher.ts";
import type { TenantLimiter } from "./fair-queue.ts";
import { type FillResult, keepForReply } from "./large-results.ts";
import {
  idColumns,
  nameOfRow,
  type OpenRow,
  parseRecord,
  RECORD_SELECT,
  type RecordRow,
  STATE,
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

const MAX_IN_FLIGHT = 1;

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
export function recordsOf(
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

/**
 * Returns a function that reads records with all results, batched over all its callers: each at the index of its id;
 * undefined if the key is unknown or forgotten.
 */
export function createReadRecords(readings: Readings, fillResult: FillResult) {
  return async (ids: readonly RecordId[], deadline: Deadline) => {
    const room = createReplyRoom();
    return await settlePending(
      await readings.submitAll(ids, deadline),
      (record) => record && fillResult(record, deadline, room),
    );
  };
}

/**
 * Lists the keys whose claims are resolved: all but those in progress. Nearly all keys in question are in progress, so
 * only the others are returned.
 */
const findResolvedRecords = {
  name: "find_resolved_records",
  text: `
with in_progress as materialized (
  select i.ordinal
    from unnest($1::int[], $2::text[], $3::text[]) with ordinality as i (tenant_id, namespace, key, ordinal)
    join records r
      on ${equalKeys("r", "i")}
   where r.state = ${STATE.inProgress}
     and r.lease_expires_at > now()
     and r.expires_at > now()
)
select resolved.ordinal::int - 1 as index
  from (select generate_subscripts($1::int[], 1)::bigint as ordinal
        except
        select ordinal from in_progress) resolved`,
};

/**
 * Returns the indexes of the ids that are not in progress under a running lease. Runs one statement; while a node of Citus
 * is unreachable, one for each shard, and skips the ids on that node.
 */
export async function findResolved(
  { pool, shards }: RecordsDatabase,
  ids: readonly RecordId[],
): Promise<ReadonlySet<number>> {
  if (shards === undefined || shards.unreachableNodes() === 0)
    return new Set(await resolvedAmong(pool.run, ids));
  const byShard = Map.groupBy(ids.keys(), (index) => shards.of((ids[index] as RecordId).key));
  const found = await Promise.allSettled(
    Array.from(byShard, async ([shard, indexes]) => {
      const own = indexes.map((index) => ids[index] as RecordId);
      return (await resolvedAmong(shards.runnerOn(shard), own)).map((index) => indexes[index] as number);
    }),
  );
  const indexes = found.flatMap((each) => {
    if (each.status === "fulfilled") return each.value;
    // The shard's node is unreachable.
    if (each.reason instanceof Refusal) return [];
    throw each.reason;
  });
  return new Set(indexes);
}

async function resolvedAmong(run: Runner["run"], ids: readonly RecordId[]): Promise<readonly number[]> {
  const rows = await run<{ readonly index: number }>(findResolvedRecords, idColumns(ids));
  return rows.map(({ index }) => index);
}
