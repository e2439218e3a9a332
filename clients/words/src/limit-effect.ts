import { durationMs } from "@bufbuild/protobuf/wkt";
import type { TenantUsage } from "@onceward/client/proto";
import type { Policy, PolicyBounds, Quotas } from "@onceward/client/proto";
import {
  amountWords,
  busiestMinute,
  type Fullness,
  MEASURED,
  type MeasuredQuota,
  quotaUse,
  refusedOfBusiest,
} from "./quota-use.ts";
import { formatCount, formatDuration, formatNoun, formatSize } from "./words.ts";

/** The quotas in words. */
const QUOTA_LABELS: Readonly<Record<MeasuredQuota, string>> = {
  liveRecords: "Stored records",
  storedBytes: "Stored bytes",
  declaredNamespaces: "Declared namespaces",
  operationsPerSecond: "Claims, at their busiest",
};

/** What new limits do to the present use of one quota. */
export interface LimitEffect {
  readonly quota: MeasuredQuota;
  /** The quota in words. */
  readonly label: string;
  readonly used: string;
  readonly limit: string;
  readonly fullness: Fullness;
  /** What follows. */
  readonly consequence: string;
}

/** Returns the effect of `quotas` on what a tenant uses now, and used in its busiest minute. */
export function effectOfQuotas(usage: TenantUsage, quotas: Partial<Quotas>): readonly LimitEffect[] {
  const { operationsPerSecond, burst } = quotas;
  const refused = operationsPerSecond === undefined ? 0 : refusedOfBusiest(usage, operationsPerSecond, burst);
  return MEASURED.map((quota) => {
    const use = quotaUse(quota, usage, quotas);
    return {
      quota,
      label: QUOTA_LABELS[quota],
      used: use.used === undefined ? "not counted" : amountWords(quota, use.used),
      limit: use.limit === undefined ? "not limited" : amountWords(quota, use.limit),
      fullness: use.fullness,
      consequence:
        quota === "operationsPerSecond"
          ? rateWords(usage, refused, quotas.dryRun === true)
          : consequenceOf(quota, use.fullness, quotas.dryRun === true),
    };
  });
}

/** Says what a limit of the rate would have done to the busiest minute. */
function rateWords(usage: TenantUsage, refused: number, isDryRun: boolean): string {
  const { claims } = busiestMinute(usage);
  if (claims === 0) return "No claim came in the last 15 minutes.";
  const minute = `the ${formatNoun(claims, "claim", "claims")} of the busiest minute in the last 15`;
  if (refused === 0) return `None of ${minute} would have been refused.`;
  return `Of ${minute}, at least ${formatCount(refused)} would have been ${isDryRun ? "counted, and answered" : "refused"}.`;
}

const REFUSED = {
  liveRecords: "new claims",
  storedBytes: "new claims",
  declaredNamespaces: "new declarations of namespaces",
} as const;

function consequenceOf(quota: keyof typeof REFUSED, how: Fullness, isDryRun: boolean): string {
  switch (how) {
    case "not limited":
      return "Nothing is refused.";
    case "not counted":
      return "The count begins with the quota: whether it is used up is known seconds later.";
    case "within":
      return "Nothing is refused now.";
    case "near":
      return "Little is left.";
    case "beyond": {
      // A namespace is refused also while calls are only counted: this quota is one of the administration's.
      const isCountedOnly = isDryRun && quota !== "declaredNamespaces";
      return isCountedOnly ? `Would refuse ${REFUSED[quota]}; only counted.` : `Refuses ${REFUSED[quota]}.`;
    }
    default:
      return how satisfies never;
  }
}

/** Returns a sentence for each value of the tenant's policy that is beyond new bounds: it stays in force. */
export function beyondBounds(
  policy: Policy | undefined,
  bounds: PolicyBounds | undefined,
): readonly string[] {
  if (policy === undefined || bounds === undefined) return [];
  const retention = policy.keyRetention && durationMs(policy.keyRetention);
  const lease = policy.maxLease && durationMs(policy.maxLease);
  const { minKeyRetention, maxKeyRetention, maxLease, maxResultBytes } = bounds;
  const found: string[] = [];
  if (retention !== undefined && maxKeyRetention && retention > durationMs(maxKeyRetention)) {
    found.push(`The key retention of ${formatDuration(retention)} is longer than the new bound.`);
  }
  if (retention !== undefined && minKeyRetention && retention < durationMs(minKeyRetention)) {
    found.push(`The key retention of ${formatDuration(retention)} is shorter than the new bound.`);
  }
  if (lease !== undefined && maxLease && lease > durationMs(maxLease)) {
    found.push(`The longest lease of ${formatDuration(lease)} is longer than the new bound.`);
  }
  const { maxResultBytes: largest } = policy;
  if (largest !== undefined && maxResultBytes !== undefined && largest > maxResultBytes) {
    found.push(`The largest result of ${formatSize(largest)} is larger than the new bound.`);
  }
  return found;
}
