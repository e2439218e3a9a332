/** The counters of what quotas refused, by the quota. */
export const QUOTA_REFUSALS = [
  "refused_by_rate",
  "refused_by_concurrency",
  "refused_by_records",
  "refused_by_bytes",
] as const;

/** SQL for what quotas refused in an hour `u`. */
export const REFUSED_SUM = QUOTA_REFUSALS.map((name) => `u.${name}`).join(" + ");

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
  "settled",
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
