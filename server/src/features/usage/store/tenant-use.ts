import type { Runner } from "../../../core/store/pool.ts";
import { intArray } from "../../../core/store/sql-arrays.ts";
import { QUOTA_REFUSALS } from "../usage.ts";

/** What a tenant uses of its quotas. Undefined totals: the tenant has no quota of them, so they are not counted. */
export interface TenantUse {
  readonly tenantId: number;
  readonly liveRecords: bigint | undefined;
  readonly storedBytes: bigint | undefined;
  readonly declaredNamespaces: number;
  readonly unfinishedJobs: number;
  /** Answered claims since `recentSinceMs`, the begin of the last full hour, in milliseconds since the Unix epoch. */
  readonly recentClaims: bigint;
  readonly recentSinceMs: number;
  /** Of the same hours: refused by a quota, and beyond one that refuses nothing. */
  readonly recentRefused: bigint;
  readonly recentWouldBeRefused: bigint;
}

/** SQL for what quotas refused in an hour `u`. */
const REFUSED_SUM = QUOTA_REFUSALS.map((name) => `u.${name}`).join(" + ");

const readTenantUse = {
  name: "read_tenant_use",
  text: `
with recent as materialized (
  select date_trunc('hour', least(now(), to_timestamp($2::float8 / 1000)) at time zone 'utc') at time zone 'utc'
         - interval '1 hour' as since
)
select i.tenant_id, c.records::text as live_records, c.stored_bytes::text as stored_bytes,
       (select count(*) from namespaces n where n.tenant_id = i.tenant_id)::int as declared_namespaces,
       (select count(*) from record_jobs j where j.tenant_id = i.tenant_id and j.finished_at is null)::int
         as unfinished_jobs,
       hours.claims::text as recent_claims, hours.refused::text as recent_refused,
       hours.would_be_refused::text as recent_would_be_refused,
       date_part('epoch', recent.since) * 1000 as recent_since_ms
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

interface Row {
  readonly tenant_id: number;
  readonly live_records: string | null;
  readonly stored_bytes: string | null;
  readonly declared_namespaces: number;
  readonly unfinished_jobs: number;
  readonly recent_claims: string;
  readonly recent_refused: string;
  readonly recent_would_be_refused: string;
  readonly recent_since_ms: number;
}

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
  const rows = await runner.run<Row>(readTenantUse, [intArray(ids), latestMs ?? null]);
  return new Map(
    rows.map((row) => [
      row.tenant_id,
      {
        tenantId: row.tenant_id,
        liveRecords: row.live_records === null ? undefined : BigInt(row.live_records),
        storedBytes: row.stored_bytes === null ? undefined : BigInt(row.stored_bytes),
        declaredNamespaces: row.declared_namespaces,
        unfinishedJobs: row.unfinished_jobs,
        recentClaims: BigInt(row.recent_claims),
        recentSinceMs: row.recent_since_ms,
        recentRefused: BigInt(row.recent_refused),
        recentWouldBeRefused: BigInt(row.recent_would_be_refused),
      },
    ]),
  );
}

/** Sums a tenant's use of the last full hour and the current one. */
export interface RecentSum {
  readonly tenantId: number;
  readonly claims: number;
  readonly refused: number;
}

/** Reads the hours of all tenants, of which a tenant has two for each namespace, by their index. */
const sumRecentHours = {
  name: "sum_recent_use",
  text: `
select u.tenant_id, sum(u.claims)::float8 as claims, sum(${REFUSED_SUM})::float8 as refused
  from usage_hours u
 where u.hour at time zone 'utc'
       >= date_trunc('hour', least(now(), to_timestamp($1::float8 / 1000)) at time zone 'utc') - interval '1 hour'
 group by u.tenant_id`,
};

interface SumRow {
  readonly tenant_id: number;
  readonly claims: number;
  readonly refused: number;
}

/**
 * Returns the sums of all tenants that were used in the last full hour or the current one.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumRecentUse(runner: Runner, latestMs?: number): Promise<readonly RecentSum[]> {
  const rows = await runner.run<SumRow>(sumRecentHours, [latestMs ?? null]);
  return rows.map(({ tenant_id: tenantId, claims, refused }) => ({ tenantId, claims, refused }));
}
