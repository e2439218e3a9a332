import type { OnLeaseExpiry, PolicyOverrides } from "../../domain/policy.ts";

/** Of `tenants` and of `namespaces`; null: inherited. */
export const POLICY_COLUMNS = `
  key_retention_s, result_retention_s, failure_retention_s, default_lease_ms, max_lease_ms, on_lease_expiry,
  max_result_bytes, require_fingerprint`;

/** POLICY_COLUMNS as `pg` parses them. */
export interface PolicyRow {
  readonly key_retention_s: number | null;
  readonly result_retention_s: number | null;
  readonly failure_retention_s: number | null;
  readonly default_lease_ms: number | null;
  readonly max_lease_ms: number | null;
  readonly on_lease_expiry: OnLeaseExpiry | null;
  readonly max_result_bytes: number | null;
  readonly require_fingerprint: boolean | null;
}

/** What a row sets. */
export function parsePolicy(row: PolicyRow): PolicyOverrides {
  return {
    keyRetentionS: row.key_retention_s ?? undefined,
    resultRetentionS: row.result_retention_s ?? undefined,
    failureRetentionS: row.failure_retention_s ?? undefined,
    defaultLeaseMs: row.default_lease_ms ?? undefined,
    maxLeaseMs: row.max_lease_ms ?? undefined,
    onLeaseExpiry: row.on_lease_expiry ?? undefined,
    maxResultBytes: row.max_result_bytes ?? undefined,
    requireFingerprint: row.require_fingerprint ?? undefined,
  };
}

/** A statement's parameters for POLICY_COLUMNS, in their order: int, int, int, int, int, text, int, boolean. */
export function policyParameters(policy: PolicyOverrides): readonly unknown[] {
  return [
    policy.keyRetentionS ?? null,
    policy.resultRetentionS ?? null,
    policy.failureRetentionS ?? null,
    policy.defaultLeaseMs ?? null,
    policy.maxLeaseMs ?? null,
    policy.onLeaseExpiry ?? null,
    policy.maxResultBytes ?? null,
    policy.requireFingerprint ?? null,
  ];
}
