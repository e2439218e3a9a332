import { createRepeating, type Repeating } from "../../background/repeat.ts";
import { nowBy } from "../../database/now-by.ts";
import type { Pool, Runner } from "../../database/pool.ts";
import { float8Array, textArray } from "../../database/sql-arrays.ts";
import { type DatabaseClock, UNCHECKED_CLOCK } from "../../domain/database-clock.ts";
import { addUsage, type UsageCount } from "./add-usage.ts";
import type { RecentRefusals, RefusedByTenant } from "./recent-refusals.ts";
import type { EndedMinute, RecentUse } from "./recent-use.ts";
import type { UsageMeter } from "./usage-meter.ts";

/** What a replica counted in the last minute is dropped after so many flushes that it missed. */
const STALE_FLUSHES = 4;
/** Maximum namespaces per statement. */
const MAX_COUNTS = 1000;

/**
 * Stores the meter's counts periodically. When it stops, it stores the remaining ones: the meter must not count after that.
 *
 * Each flush has a sequence number, and the database adds a number once. A flush whose reply was lost is
 * repeated with the same number and counts, so that nothing is counted twice or lost.
 */
export function createUsageFlusher(options: {
  readonly pool: Pool;
  readonly meter: UsageMeter;
  readonly recent: RecentUse;
  readonly refusals: Pick<RecentRefusals, "endSlot" | "lastMinute">;
  readonly replica: { readonly id: string; readonly version: string };
  readonly databaseClock?: Pick<DatabaseClock, "latestMs">;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
}): Repeating {
  const {
    pool,
    meter,
    recent,
    refusals,
    replica,
    databaseClock = UNCHECKED_CLOCK,
    intervalMs,
    onFailed,
  } = options;
  let seq = 1;
  /**
   * The counts that were sent with `seq`. They do not change until the flush succeeds; the meter collects new
   * ones.
   */
  let sent: readonly UsageCount[] = [];
  let isStoredIdle = true;

  async function flush(): Promise<void> {
    // Counts that are added from here on wait for the next flush.
    let left = sent.length + meter.size();
    while (left > 0) {
      if (sent.length === 0) sent = meter.take(MAX_COUNTS);
      await addUsage(pool, { replica, seq }, sent, databaseClock.latestMs());
      recent.add(sent);
      left -= sent.length;
      sent = [];
      seq++;
    }
    await storeRecent();
  }

  /** Stores the last minute, unless it is as empty as what is stored. */
  async function storeRecent(): Promise<void> {
    recent.endSlot(Date.now());
    refusals.endSlot();
    const lastMinute = recent.lastMinute();
    const refused = refusals.lastMinute();
    const ended = recent.ended();
    const isIdle = Object.keys(lastMinute.counts).length + Object.keys(refused).length === 0;
    if (isIdle && isStoredIdle && ended.length === 0) return;
    await storeRecentUse(pool, {
      replicaId: replica.id,
      validForMs: STALE_FLUSHES * intervalMs,
      lastMinute,
      ended,
      refused,
      latestMs: databaseClock.latestMs(),
    });
    recent.forgetEnded();
    isStoredIdle = isIdle;
  }

  return createRepeating({ intervalMs, work: flush, turnsAtStop: 1, onFailed });
}

/** Minutes are shown for an hour. Those of replicas that have stopped are deleted by the others. */
const storeRecent = {
  name: "store_recent_use",
  text: `
with now_row as (
  insert into usage_now as n (replica_id, valid_until, seconds, counts, refused)
  values ($1::uuid, ${nowBy("$7")} + make_interval(secs => $2::float8 / 1000), $3::float8, $4::jsonb, $8::jsonb)
  on conflict (replica_id) do update set
    valid_until = excluded.valid_until, seconds = excluded.seconds, counts = excluded.counts, refused = excluded.refused
), stopped as (
  delete from usage_now where replica_id <> $1::uuid and valid_until < ${nowBy("$7")} - interval '10 minutes'
), old as (
  delete from usage_minutes where minute < ${nowBy("$7")} - interval '62 minutes'
)
insert into usage_minutes as m (minute, replica_id, counts)
select to_timestamp(i.minute / 1000), $1::uuid, i.counts::jsonb
  from unnest($5::float8[], $6::text[]) as i (minute, counts)
on conflict (minute, replica_id) do update set counts = excluded.counts`,
};

/** Stores a replica's last minute, and minutes that have ended. It can be repeated. */
export async function storeRecentUse(
  runner: Runner,
  use: {
    readonly replicaId: string;
    /** How long the last minute is shown, unless it is stored again. */
    readonly validForMs: number;
    readonly lastMinute: ReturnType<RecentUse["lastMinute"]>;
    readonly ended: readonly EndedMinute[];
    /** Of the last minute. */
    readonly refused: RefusedByTenant;
    /** As DatabaseClock. */
    readonly latestMs?: number | undefined;
  },
): Promise<void> {
  const { replicaId, validForMs, lastMinute, ended, refused, latestMs } = use;
  await runner.run(storeRecent, [
    ...[replicaId, validForMs, lastMinute.seconds, JSON.stringify(lastMinute.counts)],
    float8Array(ended.map(({ minuteMs }) => minuteMs)),
    textArray(ended.map(({ counts }) => JSON.stringify(counts))),
    ...[latestMs ?? null, JSON.stringify(refused)],
  ]);
}
