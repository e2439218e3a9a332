import type { Runner } from "../../../core/store/pool.ts";
import { intArray } from "../../../core/store/sql-arrays.ts";

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
}

const readTenantUse = {
  name: "read_tenant_use",
  text: `
with recent as materialized (
  select date_trunc('hour', now() at time zone 'utc') at time zone 'utc' - interval '1 hour' as since
)
select i.tenant_id, c.records::text as live_records, c.stored_bytes::text as stored_bytes,
       (select count(*) from namespaces n where n.tenant_id = i.tenant_id)::int as declared_namespaces,
       (select count(*) from record_jobs j where j.tenant_id = i.tenant_id and j.finished_at is null)::int
         as unfinished_jobs,
       (select coalesce(sum(u.claims), 0)
          from usage_hours u
         where u.tenant_id = i.tenant_id
           and u.hour >= recent.since)::text as recent_claims,
       date_part('epoch', recent.since) * 1000 as recent_since_ms
  from unnest($1::int[]) as i (tenant_id)
 cross join recent
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
  readonly recent_since_ms: number;
}

/** Returns the use of tenants, by their ids. */
export async function findTenantUse(
  runner: Runner,
  ids: readonly number[],
): Promise<ReadonlyMap<number, TenantUse>> {
  const rows = await runner.run<Row>(readTenantUse, [intArray(ids)]);
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
      },
    ]),
  );
}
