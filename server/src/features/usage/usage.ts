/** The counters of what quotas refused, by the quota. */
export const QUOTA_REFUSALS = [
  "refused_by_rate",
  "refused_by_concurrency",
  "refused_by_records",
  "refused_by_bytes",
] as const;

/**
 * The counters of a namespace's use, as columns of `usage_hours`. `tenant.proto` explains them in UsageHour.
 */
export const USAGE_COUNTERS = [
  "claims",
  "granted",
  "replayed",
  "in_progress",
  "ambiguous",
  "mismatches",
  "reclaims",
  "fenced",
  "completions",
  "swept",
  "late_keys_refused",
  "late_keys_granted",
  "without_key_time",
  ...QUOTA_REFUSALS,
  "would_be_refused",
] as const;

export type UsageCounter = (typeof USAGE_COUNTERS)[number];

/** A number for each counter. */
export type UsageCounters = Record<UsageCounter, number>;

/** Returns the numbers of the counters. */
export function countersBy(numberOf: (name: UsageCounter) => number): UsageCounters {
  return Object.fromEntries(USAGE_COUNTERS.map((name) => [name, numberOf(name)])) as UsageCounters;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Upper limits of the buckets of repeated claims that earlier versions of the server counted. A further bucket counts later ones. Hours of
 * their use are kept for 400 days.
 */
export const EARLIER_LATENESS_LIMITS_MS: readonly number[] = [
  1000,
  10_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  DAY_MS,
  3 * DAY_MS,
  7 * DAY_MS,
  30 * DAY_MS,
];
