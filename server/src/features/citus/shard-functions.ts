import type { Runner } from "../../core/store/pool.ts";

/**
 * Creates the function with which a statement holds a shard on its node until its transaction ends. It returns
 * `value`, so that it can stand in a statement where the value is needed first.
 *
 * Citus moves a shard by a lock that it takes before its last step, and leaves the old table for a while. A statement
 * on that table without the lock would write rows that are lost with it. The function waits for the lock, and then
 * reads, with a new snapshot because it is volatile, whether the shard is still on this node, and whether
 * `onceward_run_on_shard` exists: without it, no statement on the table of a shard begins (`undistribute-records.ts`).
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
  ) or not exists (
    select from pg_proc where proname = 'onceward_run_on_shard'
  ) then
    raise exception 'shard % is not on this node, or is not used by itself', shard using errcode = 'OW001';
  end if;
  return value;
end $$`;

/** Sends the function to all nodes, also to those that are added later. */
export const DISTRIBUTE_SHARD_GUARD =
  "select create_distributed_function('onceward_hold_shard(bigint, anyelement)')";

/**
 * Creates the function that runs a statement on the table of a shard. Its caller names the columns of the rows. The
 * statement's only parameter is the array `parameters`.
 */
export const CREATE_SHARD_RUNNER = `
create or replace function onceward_run_on_shard(key text, statement text, parameters text[]) returns setof record
language plpgsql volatile as $$
begin
  return query execute statement using parameters;
end $$`;

/** Sends the function to all nodes, and lets Citus run it on the node that holds the key. The records must be distributed. */
export const DISTRIBUTE_SHARD_RUNNER = `
select create_distributed_function('onceward_run_on_shard(text, text, text[])', 'key', colocate_with := 'records')`;

/** Drops the function on all nodes. */
export const DROP_SHARD_RUNNER = "drop function if exists onceward_run_on_shard(text, text, text[])";

/** Run on a worker, waits for all statements there that hold a shard. */
export const WAIT_FOR_HELD_SHARDS = `
select count(lock_shard_metadata(7 /* ExclusiveLock */, array[s.shardid]))
  from pg_dist_shard s
 where s.logicalrelid = 'records'::regclass`;

const findShardFunctions = {
  name: "find_shard_functions",
  text: `
select to_regprocedure('onceward_hold_shard(bigint, anyelement)') is not null
   and exists (select from pg_dist_object o
                 join pg_dist_partition p on p.colocationid = o.colocationid
                where o.objid = to_regprocedure('onceward_run_on_shard(text, text, text[])')
                  and o.distribution_argument_index = 0
                  and p.logicalrelid = 'records'::regclass) as found`,
};

/** Returns whether the functions exist, and Citus runs the second one where the records' shards are. */
export async function hasShardFunctions(runner: Runner): Promise<boolean> {
  const [row] = await runner.run<{ found: boolean }>(findShardFunctions, []);
  return row?.found === true;
}

/**
 * The SQLSTATEs of a statement on a shard that is not on its node, or not used by itself: the guard's, and those of a missing
 * table and function.
 */
export const MOVED_STATES: readonly string[] = ["OW001", "42P01", "42883"];
