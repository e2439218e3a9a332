import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { Quotas } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { formatCount, formatEstimate, formatSize } from "../../format/quantity.ts";
import type { StateTone } from "../../parts/state-mark.tsx";

/** The quotas whose use is known, in the order of the screens. */
export const MEASURED = ["liveRecords", "storedBytes", "declaredNamespaces", "operationsPerSecond"] as const;
export type MeasuredQuota = (typeof MEASURED)[number];

/** The use of a quota. */
export interface QuotaUse {
  /** Undefined: the service does not count it, because no quota asks for it. */
  readonly used: number | undefined;
  /** Undefined: not limited. */
  readonly limit: number | undefined;
}

/** The contract's default (policy.proto). */
const DEFAULT_DECLARED_NAMESPACES = 1_000;
const SECOND_MS = 1_000;
/** The part of a quota from which it needs attention before it refuses calls. */
const NEAR = 0.8;

/** Returns the use of a quota beside its limit in `quotas`, which may be other ones than those in force. */
export function quotaUse(
  quota: MeasuredQuota,
  usage: TenantUsage,
  quotas: Partial<Quotas>,
  now: Date,
): QuotaUse {
  switch (quota) {
    case "liveRecords":
    case "storedBytes":
      return { used: numberOf(usage[quota]), limit: numberOf(quotas[quota]) };
    case "declaredNamespaces":
      return {
        used: usage.declaredNamespaces,
        limit: quotas.declaredNamespaces ?? DEFAULT_DECLARED_NAMESPACES,
      };
    case "operationsPerSecond":
      return { used: claimsPerSecond(usage, now), limit: quotas.operationsPerSecond };
    default:
      return quota satisfies never;
  }
}

/** Returns the claims that were answered a second, on average of the last full hour and the current one. */
export function claimsPerSecond({ recentClaims, recentSince }: TenantUsage, now: Date): number | undefined {
  if (recentSince === undefined) return undefined;
  const seconds = (now.getTime() - timestampDate(recentSince).getTime()) / SECOND_MS;
  return seconds <= 0 ? undefined : Number(recentClaims) / seconds;
}

/** How full a quota is. */
export type Fullness = "not counted" | "not limited" | "within" | "near" | "beyond";

/** Returns how full a quota is: "near" from 80 %, "beyond" when it refuses calls. */
export function fullness({ used, limit }: QuotaUse): Fullness {
  if (limit === undefined) return "not limited";
  if (used === undefined) return "not counted";
  if (used >= limit) return "beyond";
  return used >= limit * NEAR ? "near" : "within";
}

/** How a fullness is shown. */
export const FULLNESS_MARKS: Readonly<Record<Fullness, { readonly tone: StateTone; readonly word: string }>> =
  {
    "not counted": { tone: "quiet", word: "Not counted" },
    "not limited": { tone: "quiet", word: "Not limited" },
    within: { tone: "good", word: "Within" },
    near: { tone: "attention", word: "Nearly used up" },
    beyond: { tone: "bad", word: "Used up" },
  };

/** Returns an amount of a quota with its unit. */
export function amountWords(quota: MeasuredQuota, amount: number): string {
  switch (quota) {
    case "storedBytes":
      return formatSize(amount);
    case "operationsPerSecond":
      return `${formatEstimate(amount)} a second`;
    case "liveRecords":
    case "declaredNamespaces":
      return formatCount(amount);
    default:
      return quota satisfies never;
  }
}

function numberOf(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}
