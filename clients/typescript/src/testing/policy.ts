import { DEFAULT_POLICY as CONTRACT_DEFAULTS, MAX_KEY_AHEAD_MS } from "../wire/limits.ts";

/** The policy of a namespace. Seconds and milliseconds are whole numbers. */
export interface TestingPolicy {
  /** How long a key is remembered, from its claim or, once completed, from its completion. Default: 72 h. */
  readonly keyRetentionS: number;
  /** How long a successful result can be replayed. Default, and at most: `keyRetentionS`. */
  readonly resultRetentionS: number;
  /** How long a failure can be replayed. Default: `resultRetentionS`; at most `keyRetentionS`. */
  readonly failureRetentionS: number;
  /** The lease of a claim that asks for none, in milliseconds. Default: 30,000. */
  readonly defaultLeaseMs: number;
  /** The longest lease that a claim may ask for, in milliseconds. Default: 900,000. */
  readonly maxLeaseMs: number;
  /** RECLAIM (default): the next claim gets the key, for `reclaimWithinS`. HOLD: the record is ambiguous until it is resolved or its retention ends. */
  readonly onLeaseExpiry: "RECLAIM" | "HOLD";
  /**
   * With RECLAIM: how long after a record's first claim the next claim gets a key whose lease expired; afterwards the record is
   * ambiguous. Default: without a limit.
   */
  readonly reclaimWithinS: number;
  /** The largest payload of a result. Default: 64 KiB. */
  readonly maxResultBytes: number;
  /** Whether a claim without a fingerprint is refused. Default: false. */
  readonly requireFingerprint: boolean;
  /**
   * What happens to a claim whose key is older than `keyRetentionS` and has no record. RUN (default): it is granted. REFUSE: it
   * is refused. REQUIRE_TIME: so it is, and a key whose time is unknown is refused.
   * Unless RUN, records are kept for 10 minutes longer than `keyRetentionS`.
   */
  readonly lateKeys: "RUN" | "REFUSE" | "REQUIRE_TIME";
}

/** The service's own defaults of the fields that a policy in memory has. */
const DEFAULT_POLICY: TestingPolicy = {
  keyRetentionS: CONTRACT_DEFAULTS.keyRetentionS,
  resultRetentionS: CONTRACT_DEFAULTS.resultRetentionS,
  failureRetentionS: CONTRACT_DEFAULTS.failureRetentionS,
  defaultLeaseMs: CONTRACT_DEFAULTS.defaultLeaseMs,
  maxLeaseMs: CONTRACT_DEFAULTS.maxLeaseMs,
  onLeaseExpiry: CONTRACT_DEFAULTS.onLeaseExpiry,
  reclaimWithinS: Number.POSITIVE_INFINITY,
  maxResultBytes: CONTRACT_DEFAULTS.maxResultBytes,
  requireFingerprint: CONTRACT_DEFAULTS.requireFingerprint,
  lateKeys: CONTRACT_DEFAULTS.lateKeys,
};

const CHOICES: Partial<Record<string, readonly unknown[]>> = {
  onLeaseExpiry: ["RECLAIM", "HOLD"],
  lateKeys: ["RUN", "REFUSE", "REQUIRE_TIME"],
  requireFingerprint: [false, true],
};

/** Longer than a key may be ahead of the clock, so that a record outlives the time in which its key is accepted. */
const LATE_KEYS_MARGIN_S = (2 * MAX_KEY_AHEAD_MS) / 1000;

/** A policy without gaps. Results are not kept for longer than their key. */
export interface ResolvedPolicy extends TestingPolicy {
  /** How long a record is kept: `keyRetentionS`, and a margin where late keys are refused. */
  readonly keptS: number;
}

/**
 * Returns the effective policy, from the most general layer to the most specific one. A retention that no layer sets
 * follows the wider one (failure → result → key).
 *
 * @throws TypeError for a field or a value that no policy has: a test would pass under another policy than it names.
 */
export function resolvePolicy(...layers: readonly Partial<TestingPolicy>[]): ResolvedPolicy {
  for (const layer of layers) checkFields(layer);
  const set: Partial<TestingPolicy> = Object.assign({}, ...layers);
  const policy: TestingPolicy = { ...DEFAULT_POLICY, ...set };
  const { keyRetentionS, maxLeaseMs, defaultLeaseMs, onLeaseExpiry, lateKeys } = policy;
  const keptS = keyRetentionS + (lateKeys === "RUN" ? 0 : LATE_KEYS_MARGIN_S);
  const within = (retentionS = keptS) => (retentionS >= keyRetentionS ? keptS : retentionS);
  const reclaimWithinS =
    set.reclaimWithinS === undefined ? policy.reclaimWithinS : Math.min(set.reclaimWithinS, keyRetentionS);
  const resultRetentionS = within(set.resultRetentionS);
  const failureRetentionS = within(set.failureRetentionS ?? resultRetentionS);
  return {
    ...policy,
    keptS,
    resultRetentionS,
    failureRetentionS,
    defaultLeaseMs: Math.min(defaultLeaseMs, maxLeaseMs),
    reclaimWithinS: onLeaseExpiry === "HOLD" ? 0 : reclaimWithinS,
  };
}

function checkFields(policy: Partial<TestingPolicy>): void {
  for (const [name, value] of Object.entries(policy)) {
    if (!Object.hasOwn(DEFAULT_POLICY, name)) {
      throw new TypeError(`${name} is not a field of a policy: ${Object.keys(DEFAULT_POLICY).join(", ")}`);
    }
    const choices = CHOICES[name];
    if (
      choices?.includes(value) ||
      (choices === undefined && Number.isSafeInteger(value) && Number(value) > 0)
    )
      continue;
    throw new TypeError(`${name} must be ${choices?.join(", ") ?? "a whole number above 0"}`);
  }
}
