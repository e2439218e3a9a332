import type { FieldTable, Overrides } from "./fields.ts";

/** What happens when a lease expires: the next Claim gets the key, or the record is ambiguous until a person decides. */
export type OnLeaseExpiry = "RECLAIM" | "HOLD";

/** How a namespace's records behave. Seconds and milliseconds are whole numbers. */
export interface Policy {
  /** How long a key is remembered, from its claim or, once completed, from its completion. */
  readonly keyRetentionS: number;
  /** How long a successful result can be replayed; never longer than the key is remembered. */
  readonly resultRetentionS: number;
  /** How long a failure can be replayed; never longer than the key is remembered. */
  readonly failureRetentionS: number;
  readonly defaultLeaseMs: number;
  readonly maxLeaseMs: number;
  readonly onLeaseExpiry: OnLeaseExpiry;
  readonly maxResultBytes: number;
  readonly requireFingerprint: boolean;
}

/** The fields of a policy: their names in messages, their columns and their kinds. */
export const POLICY_FIELDS = {
  keyRetentionS: { proto: "key_retention", column: "key_retention_s", kind: "seconds" },
  resultRetentionS: { proto: "result_retention", column: "result_retention_s", kind: "seconds" },
  failureRetentionS: { proto: "failure_retention", column: "failure_retention_s", kind: "seconds" },
  defaultLeaseMs: { proto: "default_lease", column: "default_lease_ms", kind: "milliseconds" },
  maxLeaseMs: { proto: "max_lease", column: "max_lease_ms", kind: "milliseconds" },
  onLeaseExpiry: { proto: "on_lease_expiry", column: "on_lease_expiry", kind: "enum" },
  maxResultBytes: { proto: "max_result_bytes", column: "max_result_bytes", kind: "integer" },
  requireFingerprint: { proto: "require_fingerprint", column: "require_fingerprint", kind: "boolean" },
} as const satisfies FieldTable<Policy>;

/** The fields that a tenant or a namespace sets; a namespace inherits an unset field from its tenant. */
export type PolicyOverrides = Overrides<Policy>;

const HOUR_S = 3600;

/** The policy of a tenant that sets no field. */
export const DEFAULT_POLICY: Policy = {
  // A Friday deploy, fixed on Monday.
  keyRetentionS: 72 * HOUR_S,
  resultRetentionS: 72 * HOUR_S,
  failureRetentionS: 72 * HOUR_S,
  defaultLeaseMs: 30_000,
  maxLeaseMs: 15 * 60_000,
  onLeaseExpiry: "RECLAIM",
  maxResultBytes: 64 * 1024,
  requireFingerprint: false,
};

/**
 * Returns the policy in force. Layers are given from the most general to the most specific.
 *
 * An unset retention follows the wider one (failure → result → key), and none is longer than the key's: a namespace that
 * shortens `keyRetentionS` shortens the others with it.
 */
export function resolvePolicy(...layers: readonly PolicyOverrides[]): Policy {
  const set: Partial<Policy> = Object.assign({}, ...layers.map(withoutUnset));
  const keyRetentionS = set.keyRetentionS ?? DEFAULT_POLICY.keyRetentionS;
  const resultRetentionS = Math.min(set.resultRetentionS ?? keyRetentionS, keyRetentionS);
  const maxLeaseMs = set.maxLeaseMs ?? DEFAULT_POLICY.maxLeaseMs;
  return {
    ...DEFAULT_POLICY,
    ...set,
    keyRetentionS,
    resultRetentionS,
    failureRetentionS: Math.min(set.failureRetentionS ?? resultRetentionS, keyRetentionS),
    maxLeaseMs,
    defaultLeaseMs: Math.min(set.defaultLeaseMs ?? DEFAULT_POLICY.defaultLeaseMs, maxLeaseMs),
  };
}

function withoutUnset(layer: PolicyOverrides): Partial<Policy> {
  return Object.fromEntries(
    Object.entries(layer).filter(([, value]) => value !== undefined && value !== null),
  );
}
