import { create } from "@bufbuild/protobuf";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { textArray } from "../../database/sql-arrays.ts";
import { countFields } from "../../domain/counts.ts";
import { timestamp } from "../../domain/violations.ts";
import { type UsageMinute, UsageMinuteSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { namedCounts, RECENT_COUNTERS, type RecentCounts, sumOf } from "./recent-use.ts";

/** Of a tenant's minutes that have ended. */
export const MINUTES_SHOWN = 60;

/** A tenant's minute, the sums of all replicas. */
export interface UsedMinute {
  readonly tenantId: number;
  readonly minuteMs: number;
  readonly counts: RecentCounts;
  readonly peakCallsPerSecond: number;
}

/** Each replica has a row for each minute in which it was used: each is read once, regardless of the number of tenants. */
const readMinuteRows = {
  name: "read_usage_minutes",
  text: `
select m.minute_ms as "minuteMs", e.key::int as "tenantId", e.value as counts
  from (select extract(epoch from minute) * 1000 as minute_ms, counts
          from usage_minutes
         where minute > ${nowBy("$3")} - make_interval(mins => $2::int + 1)
           and counts ?| $1::text[]) m
 cross join lateral jsonb_each(m.counts) e
 where e.key = any($1::text[])
 order by m.minute_ms`,
};

/**
 * Returns the minutes of tenants that have ended, of the last `minutes`, at most 60, the earliest first.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readMinutes(
  runner: Runner,
  tenantIds: readonly number[],
  minutes: number,
  latestMs?: number,
): Promise<readonly UsedMinute[]> {
  const rows = await runner.run<Omit<UsedMinute, "peakCallsPerSecond">>(readMinuteRows, [
    ...[textArray(tenantIds.map(String)), minutes, latestMs ?? null],
  ]);
  const found = new Map<string, UsedMinute>();
  for (const { minuteMs, tenantId, counts } of rows) {
    const name = `${minuteMs} ${tenantId}`;
    const before = found.get(name);
    found.set(name, {
      tenantId,
      minuteMs,
      counts: sumOf(before?.counts ?? [], counts.slice(0, RECENT_COUNTERS.length)),
      peakCallsPerSecond: (before?.peakCallsPerSecond ?? 0) + (counts[RECENT_COUNTERS.length] ?? 0) / 1000,
    });
  }
  return [...found.values()];
}

/** Returns a minute as callers see it. */
export function minuteMessage({ minuteMs, counts, peakCallsPerSecond }: UsedMinute): UsageMinute {
  const {
    claims,
    duplicates,
    mismatches,
    late_keys_refused,
    would_be_refused,
    fenced: _,
    ...refused
  } = namedCounts(counts);
  return create(UsageMinuteSchema, {
    minute: timestamp(minuteMs),
    ...countFields({ claims, duplicates, mismatches, late_keys_refused, would_be_refused }),
    refused: BigInt(Object.values(refused).reduce((sum, count) => sum + count, 0)),
    peakCallsPerSecond,
  });
}
