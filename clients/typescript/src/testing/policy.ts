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
  /** RECLAIM (default): the next claim gets the key. HOLD: the record is ambiguous until it is resolved or its retention ends. */
  readonly onLeaseExpiry: "RECLAIM" | "HOLD";
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

const HOUR_S = 3600;

/** The service's own defaults. */
const DEFAULT_POLICY: TestingPolicy = {
  keyRetentionS: 72 * HOUR_S,
  resultRetentionS: 72 * HOUR_S,
  failureRetentionS: 72 * HOUR_S,
  defaultLeaseMs: 30_000,
  maxLeaseMs: 15 * 60_000,
  onLeaseExpiry: "RECLAIM",
  maxResultBytes: 64 * 1024,
  requireFingerprint: false,
  lateKeys: "RUN",
};

const CHOICES: Partial<Record<string, readonly unknown[]>> = {
  onLeaseExpiry: ["RECLAIM", "HOLD"],
  lateKeys: ["RUN", "REFUSE", "REQUIRE_TIME"],
  requireFingerprint: [false, true],
};

/** Longer than a key may be ahead of the clock, so that a record outlives the time in which its key is accepted. */
const LATE_KEYS_MARGIN_S = 600;

/**
 * Returns how long a claim's record and its results are kept. A request can shorten it only where keys of any age are accepted;
 * elsewhere the record is kept for longer than its policy says, and so are results that are kept for as long as their key.
 */
export function retentionOf(
  policy: TestingPolicy,
  requestedS: number | undefined,
): Pick<TestingPolicy, "keyRetentionS" | "resultRetentionS" | "failureRetentionS"> {
  const { lateKeys, resultRetentionS, failureRetentionS } = policy;
  const keptS = lateKeys === "RUN" ? (requestedS ?? policy.keyRetentionS) : policy.keyRetentionS;
  const marginS = lateKeys === "RUN" ? 0 : LATE_KEYS_MARGIN_S;
  const stamped = (retentionS: number) => (retentionS >= keptS ? keptS + marginS : retentionS);
  return {
    keyRetentionS: keptS + marginS,
    resultRetentionS: stamped(resultRetentionS),
    failureRetentionS: stamped(failureRetentionS),
  };
}

/**
 * Returns the effective policy, from the most general layer to the most specific one. A retention that no layer sets
 * follows the wider one (failure → result → key), and none outlives its key.
 *
 * @throws TypeError for a field or a value that no policy has: a test would pass under another policy than it names.
 */
export function resolvePolicy(...layers: readonly Partial<TestingPolicy>[]): TestingPolicy {
  for (const layer of layers) checkFields(layer);
  const set: Partial<TestingPolicy> = Object.assign({}, ...layers);
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
