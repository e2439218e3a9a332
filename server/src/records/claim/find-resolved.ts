import type { Runner } from "../../database/pool.ts";
import { Refusal } from "../../domain/refusal.ts";
import { idColumns, STATE } from "../engine/record-row.ts";
import { equalKeys } from "../engine/record-sql.ts";
import type { RecordsDatabase } from "../engine/sharded-batcher.ts";
import type { RecordId } from "../record.ts";

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
