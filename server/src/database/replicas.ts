import { type ClockOffset, type ClockReading, clockOffset, uptimeMs } from "../domain/clock-offset.ts";
import type { LiveReplica, ReplicaLoad } from "../domain/replica.ts";
import type { Runner } from "./pool.ts";
import { fromRow, type RowOf } from "./rows.ts";
import { textArray } from "./sql-arrays.ts";

/**
 * A replica that stopped while the database's clock was ahead has a heartbeat in the future once the clock is right again,
 * and would share quotas until then. Those that are live store another heartbeat within seconds.
 */
const IS_LIVE = "seen_at > now() - interval '10 seconds' and seen_at < now() + interval '10 minutes'";

/**
 * Stores a replica's heartbeat, deletes replicas without one for a minute, and counts those with one in the
 * last 10 seconds: only they share quotas. Also returns the newest migration and the clock of the database.
 *
 * What the replica last saw of the clock's move ($12) is stored only while the clock is still there, within 5 s for a slow
 * statement ($13: what the clock would show by the previous clock). Others take it for current: a replica that has not
 * seen a clock set forward would confirm it.
 */
const beatReplica = {
  name: "beat_replica",
  text: `
with beaten as (
  insert into replicas as r (id, version, degraded, calls_in_flight, operations_per_second, connections,
                             pool_size, pool_busy, pool_awaited, host, clock_ahead_ms, clock_moved_ms)
  values ($1::uuid, $2::text, $3::text[], $4::int, $5::float8, $6::int, $7::int, $8::int, $9::int, $10::text, $11::float8,
          case when abs(extract(epoch from clock_timestamp()) * 1000 - $13::float8 - $12::float8) <= 5000 then $12::float8 end)
  on conflict (id) do update set
    seen_at = now(), degraded = excluded.degraded, calls_in_flight = excluded.calls_in_flight,
    operations_per_second = excluded.operations_per_second, connections = excluded.connections,
    pool_size = excluded.pool_size, pool_busy = excluded.pool_busy, pool_awaited = excluded.pool_awaited,
    host = excluded.host, clock_ahead_ms = excluded.clock_ahead_ms,
    clock_moved_ms = excluded.clock_moved_ms
), gone as (
  delete from replicas where id <> $1::uuid and seen_at < now() - interval '1 minute'
)
select 1 + count(*)::int as replicas,
       (select name from schema_migrations order by id desc limit 1) as "schemaVersion",
       extract(epoch from clock_timestamp()) * 1000 as "databaseMs",
       (max(clock_moved_ms) filter (where seen_at < now() + interval '10 seconds'))::numeric as "othersMovedMs",
       (select count(*)::int
          from pg_stat_activity
         where datname = current_database() and application_name = 'onceward' and wait_event = 'SyncRep'
           and state_change < clock_timestamp() - interval '2 seconds') as "waitingCommits"
  from replicas
 where id <> $1::uuid and ${IS_LIVE}`,
};

/** What a replica stores at its heartbeat. */
export interface Beat {
  readonly id: string;
  readonly version: string;
  readonly degraded: readonly string[];
  readonly load: ReplicaLoad;
  /** The name of the machine or container. */
  readonly host: string;
  /** As ClockOffset, of the heartbeat before; undefined: this is the first one. */
  readonly clockAheadMs: number | undefined;
  /** As DatabaseClockWatch.movedMs, at the heartbeat before; undefined: this is the first one. */
  readonly clockMovedMs: number | undefined;
  /** As DatabaseClockWatch. */
  readonly clockExpectedMs: number | undefined;
}

/** What a heartbeat returns. */
export interface Beaten {
  /** The number of live replicas, including this one. */
  readonly replicas: number;
  /** The newest migration that ran. */
  readonly schemaVersion: string;
  readonly clock: ClockOffset;
  /** The database's clock between two readings of this machine's uptime. */
  readonly reading: ClockReading;
  /**
   * The furthest that another live replica saw the database's clock move forward, in milliseconds; undefined: there is
   * no other one that knows.
   */
  readonly othersMovedMs: number | undefined;
  /** The number of the service's commits that have waited for a synchronous standby for over 2 s. */
  readonly waitingCommits: number;
}

type BeatRow = RowOf<Omit<Beaten, "clock" | "reading">> & { readonly databaseMs: number };

/** Stores the replica's heartbeat. */
export async function beatReplicaRow(runner: Runner, beat: Beat): Promise<Beaten> {
  const { id, version, degraded, load, host, clockAheadMs, clockMovedMs, clockExpectedMs } = beat;
  const startedAtMs = Date.now();
  const upAtMs = uptimeMs();
  const [row] = await runner.run<BeatRow>(beatReplica, [
    id,
    version,
    textArray(degraded),
    load.callsInFlight,
    load.operationsPerSecond,
    load.connections,
    load.poolSize,
    load.poolBusy,
    load.poolAwaited,
    host,
    clockAheadMs ?? null,
    clockMovedMs ?? null,
    clockExpectedMs ?? null,
  ]);
  if (row === undefined) throw new Error("beat_replica returned no row");
  const { databaseMs, othersMovedMs, ...read } = row;
  return {
    ...read,
    clock: clockOffset({ startedAtMs, endedAtMs: Date.now(), databaseMs }),
    reading: { startedAtMs: upAtMs, endedAtMs: uptimeMs(), databaseMs },
    othersMovedMs: othersMovedMs ?? undefined,
  };
}

const removeReplica = { name: "remove_replica", text: "delete from replicas where id = $1::uuid" };

/** Removes a replica, so that the other replicas' shares of quotas grow at once. */
export async function removeReplicaRow(runner: Runner, id: string): Promise<void> {
  await runner.run(removeReplica, [id]);
}

const listReplicas = {
  name: "list_replicas",
  text: `
select id::text, version, degraded, host, clock_ahead_ms::numeric as "clockAheadMs",
       case when calls_in_flight is not null then json_build_object(
         'callsInFlight', calls_in_flight, 'operationsPerSecond', operations_per_second::numeric, 'connections', connections,
         'poolSize', pool_size, 'poolBusy', pool_busy, 'poolAwaited', pool_awaited) end as load,
       extract(epoch from started_at) * 1000 as "startedAtMs",
       extract(epoch from seen_at) * 1000 as "seenAtMs"
  from replicas
 where id > $1::uuid and ${IS_LIVE}
 order by id
 limit $2::int`,
};

/** Comes before every replica's id. */
export const BEFORE_ALL_REPLICAS = "00000000-0000-0000-0000-000000000000";

/** Reads up to `count` live replicas after an id, in the order of their ids. */
export async function findReplicas(runner: Runner, afterId: string, count: number): Promise<LiveReplica[]> {
  const rows = await runner.run<RowOf<LiveReplica>>(listReplicas, [afterId, count]);
  return rows.map((row) => fromRow<LiveReplica>(row));
}

const readFacts = {
  name: "read_server_facts",
  text: `
select (select name from schema_migrations order by id desc limit 1) as "schemaVersion",
       (select count(*) from replicas where seen_at > now() - interval '10 seconds')::int as replicas`,
};

/** The state of the service as its database holds it. */
export interface ServerFacts {
  /** The newest migration that ran. */
  readonly schemaVersion: string;
  /** The number of live replicas. */
  readonly replicas: number;
}

/** Reads the schema version and the number of live replicas. */
export async function readServerFacts(runner: Runner): Promise<ServerFacts> {
  const [row] = await runner.run<ServerFacts>(readFacts, []);
  if (row === undefined) throw new Error("read_server_facts returned no row");
  return row;
}
