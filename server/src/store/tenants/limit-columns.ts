import type { NarrowedBounds } from "../../domain/policy-bounds.ts";
import type { Quotas } from "../../domain/quotas.ts";

/** What an operator sets on `tenants`; null: the contract's bound, or no limit. */
export const LIMIT_COLUMNS = `
  min_key_retention_s, max_key_retention_s, max_lease_bound_ms, max_result_bytes_bound,
  quota_operations_per_second, quota_burst, quota_concurrent_calls, quota_live_records, quota_stored_bytes, weight,
  quota_dry_run, quota_declared_namespaces`;

/** LIMIT_COLUMNS as `pg` parses them. */
export interface LimitRow {
  readonly min_key_retention_s: number | null;
  readonly max_key_retention_s: number | null;
  readonly max_lease_bound_ms: number | null;
  readonly max_result_bytes_bound: number | null;
  readonly quota_operations_per_second: number | null;
  readonly quota_burst: number | null;
  readonly quota_concurrent_calls: number | null;
  /** A bigint, which `pg` hands over as text. */
  readonly quota_live_records: string | null;
  readonly quota_stored_bytes: string | null;
  readonly weight: number | null;
  readonly quota_dry_run: boolean;
  readonly quota_declared_namespaces: number | null;
}

export function parseBounds(row: LimitRow): NarrowedBounds {
  return {
    minKeyRetentionS: row.min_key_retention_s ?? undefined,
    maxKeyRetentionS: row.max_key_retention_s ?? undefined,
    maxLeaseMs: row.max_lease_bound_ms ?? undefined,
    maxResultBytes: row.max_result_bytes_bound ?? undefined,
  };
}

export function parseQuotas(row: LimitRow): Quotas {
  return {
    operationsPerSecond: row.quota_operations_per_second ?? undefined,
    burst: row.quota_burst ?? undefined,
    concurrentCalls: row.quota_concurrent_calls ?? undefined,
    liveRecords: numberOf(row.quota_live_records),
    storedBytes: numberOf(row.quota_stored_bytes),
    weight: row.weight ?? 1,
    dryRun: row.quota_dry_run,
    declaredNamespaces: row.quota_declared_namespaces ?? undefined,
  };
}

function numberOf(text: string | null): number | undefined {
  return text === null ? undefined : Number(text);
}

/** A statement's parameters for LIMIT_COLUMNS, in their order: 7 ints, 2 bigints, int, boolean, int. */
export function limitParameters(bounds: NarrowedBounds, quotas: Quotas): readonly unknown[] {
  return [
    bounds.minKeyRetentionS ?? null,
    bounds.maxKeyRetentionS ?? null,
    bounds.maxLeaseMs ?? null,
    bounds.maxResultBytes ?? null,
    quotas.operationsPerSecond ?? null,
    quotas.burst ?? null,
    quotas.concurrentCalls ?? null,
    quotas.liveRecords ?? null,
    quotas.storedBytes ?? null,
    quotas.weight,
    quotas.dryRun,
    quotas.declaredNamespaces ?? null,
  ];
}
