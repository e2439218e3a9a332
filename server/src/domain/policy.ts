/** What happens when a lease runs out: the next Claim gets the key, or it is held until somebody has found out. */
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

/** What a tenant or a namespace sets; what is undefined is inherited. */
export type PolicyOverrides = { readonly [Field in keyof Policy]?: Policy[Field] | undefined };

const HOUR_S = 3600;

/** What holds where nobody set anything. */
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
 * The policy in force, from the most general layer to the most specific one.
 *
 * A retention that nobody set follows the wider one (failure → result → key), and none outlives its key: a namespace
 * that shortens `keyRetentionS` shortens the others with it.
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
