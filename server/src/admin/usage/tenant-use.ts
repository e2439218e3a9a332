import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { intArray } from "../../database/sql-arrays.ts";
import { QUOTA_REFUSALS } from "./usage.ts";

/** What a tenant uses of its quotas. Undefined totals: the tenant has no quota of them, so they are not counted. */
export interface TenantUse {
  readonly tenantId: number;
  readonly liveRecords: number | undefined;
  readonly storedBytes: number | undefined;
  readonly declaredNamespaces: number;
  readonly unfinishedJobs: number;
  /** Answered claims since `recentSinceMs`, the begin of the last full hour, in milliseconds since the Unix epoch. */
  readonly recentClaims: number;
  readonly recentSinceMs: number;
  /** Of the same hours: refused by a quota, and beyond one that refuses nothing. */
  readonly recentRefused: number;
  readonly recentWouldBeRefused: number;
}

/** SQL for what quotas refused in an hour `u`. */
const REFUSED_SUM = QUOTA_REFUSALS.map((name) => `u.${name}`).join(" + ");

const readTenantUse = {
  name: "read_tenant_use",
  text: `
with recent as materialized (
  select date_trunc('hour', ${nowBy("$2")} at time zone 'utc') at time zone 'utc'
         - interval '1 hour' as since
)
select i.tenant_id as "tenantId", c.records::numeric as "liveRecords", c.stored_bytes::numeric as "storedBytes",
       (select count(*) from namespaces n where n.tenant_id = i.tenant_id)::int as "declaredNamespaces",
       (select count(*) from record_jobs j where j.tenant_id = i.tenant_id and j.finished_at is null)::int
         as "unfinishedJobs",
       hours.claims::numeric as "recentClaims", hours.refused::numeric as "recentRefused",
       hours.would_be_refused::numeric as "recentWouldBeRefused",
       extract(epoch from recent.since) * 1000 as "recentSinceMs"
  from unnest($1::int[]) as i (tenant_id)
 cross join recent
 cross join lateral (
       select coalesce(sum(u.claims), 0) as claims,
              coalesce(sum(${REFUSED_SUM}), 0) as refused,
              coalesce(sum(u.would_be_refused), 0) as would_be_refused
         from usage_hours u
        where u.tenant_id = i.tenant_id
          and u.hour >= recent.since) hours
  left join lateral (
       select t.records, t.stored_bytes
         from tenant_totals t
        where t.tenant_id = i.tenant_id
          and t.count_due_at > '-infinity'
        limit 1) c on true`,
};

/**
 * Returns the use of tenants, by their ids.
 *
 * @param latestMs as DatabaseClock.
 */
export async function findTenantUse(
  runner: Runner,
  ids: readonly number[],
  latestMs?: number,
): Promise<ReadonlyMap<number, TenantUse>> {
  const rows = await runner.run<RowOf<TenantUse>>(readTenantUse, [intArray(ids), latestMs ?? null]);
  return new Map(rows.map((row) => [row.tenantId, fromRow<TenantUse>(row)]));
}

/** Reads the hours of all tenants, of which a tenant has two for each namespace, by their index. */
const sumRecentHours = {
  name: "sum_recent_use",
  text: `
select u.tenant_id as "tenantId", sum(u.claims)::numeric as claims, sum(${REFUSED_SUM})::numeric as refused
  from usage_hours u
 where u.hour at time zone 'utc'
       >= date_trunc('hour', ${nowBy("$1")} at time zone 'utc') - interval '1 hour'
 group by u.tenant_id`,
};

/**
 * Returns the sums of all tenants that were used in the last full hour or the current one.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumRecentUse(runner: Runner, latestMs?: number) {
  return runner.run<Readonly<Record<"tenantId" | "claims" | "refused", number>>>(sumRecentHours, [
    latestMs ?? null,
  ]);
}
