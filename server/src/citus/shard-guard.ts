import type { Runner } from "../database/pool.ts";
import { StatementFailed } from "../database/statement-errors.ts";

/**
 * Creates the function with which a statement holds a shard on its node until its transaction ends. It returns
 * `value`, so that it can be in a statement where the value is needed first.
 *
 * Citus moves a shard by a lock that it takes before its last step, and leaves the old table for a while. A statement
 * on that table without the lock would write rows that are lost with it. The function waits for the lock, and then
 * reads, with a new snapshot because it is volatile, whether the shard is still on this node, and whether
 * `onceward_shards_closed` exists: with it, no statement on the table of a shard begins (`undistribute-records.ts`).
 *
 * It runs as its owner, the owner of the records, because Citus gives no other role that lock.
 */
export const CREATE_SHARD_GUARD = `
create or replace function onceward_hold_shard(shard bigint, value anyelement) returns anyelement
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform lock_shard_metadata(5 /* ShareLock, as Citus takes it to write */, array[shard]);
  if not exists (
    select from pg_dist_placement p join pg_dist_local_group g on g.groupid = p.groupid where p.shardid = shard
  ) or exists (
    select from pg_proc where proname = 'onceward_shards_closed'
  ) then
    raise exception 'shard % is not on this node, or is not used alone', shard using errcode = 'OW001';
  end if;
  return value;
end $$`;

/** Sends the function to all nodes, also to those that are added later. */
export const DISTRIBUTE_SHARD_GUARD =
  "select create_distributed_function('onceward_hold_shard(bigint, anyelement)')";

/** Creates the function whose existence on a node means that no statement there may hold a shard. It does nothing. */
export const CREATE_CLOSED_MARK =
  "create or replace function onceward_shards_closed() returns void language sql immutable as ''";

/** Sends the function to all nodes. */
export const DISTRIBUTE_CLOSED_MARK = "select create_distributed_function('onceward_shards_closed()')";

/** Drops the function on all nodes. */
export const DROP_CLOSED_MARK = "drop function if exists onceward_shards_closed()";

/** Run on a worker, waits for all statements there that hold a shard. */
export const WAIT_FOR_HELD_SHARDS = `
select count(lock_shard_metadata(7 /* ExclusiveLock */, array[s.shardid]))
  from pg_dist_shard s
 where s.logicalrelid = 'records'::regclass`;

const findShardGuard = {
  name: "find_shard_guard",
  text: `
select to_regprocedure('onceward_hold_shard(bigint, anyelement)') is not null
   and to_regprocedure('onceward_shards_closed()') is null as usable`,
};

/** Returns whether a statement may hold a shard: the guard exists, and the shards are not closed. */
export async function canHoldShards(runner: Runner): Promise<boolean> {
  const [row] = await runner.run<{ usable: boolean }>(findShardGuard, []);
  return row?.usable === true;
}

/** The SQLSTATEs of a statement on a shard that has moved: the guard's, and those of a missing table and function. */
const MOVED_STATES: readonly string[] = ["OW001", "42P01", "42883"];
const INTERNAL_ERROR = "XX000";

/**
 * Returns whether a node refused a statement on the table of a shard because the shard is not on it, or not used alone.
 *
 * Citus knows no shard that was divided, but leaves its table for a while: it then refuses the guard's lock, as an internal
 * error. The guard cannot look for the shard first, because Citus may divide it in between.
 */
export function isMoved(error: unknown, shard: number): boolean {
  if (!(error instanceof StatementFailed)) return false;
  if (error.sqlState !== INTERNAL_ERROR) return MOVED_STATES.includes(error.sqlState);
  return (
    error.cause instanceof Error && error.cause.message === `could not find valid entry for shard ${shard}`
  );
}
