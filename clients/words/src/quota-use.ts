import { type Quotas, QuotasSchema, type TenantUsage } from "@onceward/client/proto";
import { formatSize } from "./bytes.ts";
import { typedFields } from "./field-facts.ts";
import { REFUSALS } from "./refusals.ts";
import { formatCount, formatEstimate, formatShare } from "./words.ts";

/** The quotas whose use is known, in the order of the screens. */
export const MEASURED = ["liveRecords", "storedBytes", "declaredNamespaces", "operationsPerSecond"] as const;
/** A quota whose use is measured: TenantUsage has both. */
export type MeasuredQuota = (typeof MEASURED)[number];

/** The use of a quota, and how full it is. */
export interface QuotaUse {
  /** Undefined: the service does not count it, because no quota asks for it. */
  readonly used: number | undefined;
  /** Undefined: not limited. */
  readonly limit: number | undefined;
  readonly fullness: Fullness;
}

const FIELDS = new Map(typedFields(QuotasSchema).map((field) => [field.name, field]));
const MINUTE_S = 60;
/** What a peak is counted in (ONCEWARD_USAGE_FLUSH). */
const PEAK_S = 5;
/** The part of a quota from which it needs attention before it refuses calls. */
const NEAR = 0.8;

/** Returns the use of a quota beside its limit in `quotas`, which may be other ones than those in force. */
export function quotaUse(quota: MeasuredQuota, usage: TenantUsage, quotas: Partial<Quotas>): QuotaUse {
  switch (quota) {
    case "liveRecords":
    case "storedBytes":
      return filled(numberOf(usage[quota]), numberOf(quotas[quota]));
    case "declaredNamespaces":
      return filled(
        usage.declaredNamespaces,
        quotas.declaredNamespaces ?? Number(FIELDS.get(quota)?.default),
      );
    case "operationsPerSecond": {
      const { operationsPerSecond: limit, burst } = quotas;
      const isBeyond = limit !== undefined && refusedOfBusiest(usage, limit, burst) > 0;
      return filled(busiestMinute(usage).peak, limit, isBeyond);
    }
    default:
      return quota satisfies never;
  }
}

/** Returns the calls (claims, and what quotas refused) of the busiest minute: the last one, or one of the 15 before; and their highest rate. */
export function busiestMinute({ now, busiestMinute: ended }: TenantUsage) {
  const rate = (now?.claimsPerSecond ?? 0) + (now?.refusedPerSecond ?? 0);
  const claims = Number((ended?.claims ?? 0n) + (ended?.refused ?? 0n));
  const peak = Math.max(ended?.peakCallsPerSecond ?? 0, claims / MINUTE_S);
  if (now === undefined || peak > rate) return { claims, peak };
  // Those that came: a replica that has just started knows the rate of less than a minute.
  const refused = REFUSALS.reduce((sum, reason) => sum + now[reason], 0n);
  return { claims: Number(now.claims + refused), peak: rate };
}

/** Returns how many claims of the busiest minute a limit would have refused, at least. Without a burst, a second's worth. */
export function refusedOfBusiest(usage: TenantUsage, perSecond: number, burst = perSecond): number {
  const { claims, peak } = busiestMinute(usage);
  const ofMinute = claims - perSecond * MINUTE_S - burst;
  const ofPeak = (peak - perSecond) * PEAK_S - burst;
  return Math.max(0, Math.round(Math.max(ofMinute, ofPeak)));
}

/** How full a quota is. */
export type Fullness = "not counted" | "not limited" | "within" | "near" | "beyond";

/** A quota is "near" from 80 %, and "beyond" when it refuses calls: most when they are used up, a rate after its burst. */
function filled(used: number | undefined, limit: number | undefined, isBeyond?: boolean): QuotaUse {
  if (limit === undefined) return { used, limit, fullness: "not limited" };
  if (used === undefined) return { used, limit, fullness: "not counted" };
  if (isBeyond ?? used >= limit) return { used, limit, fullness: "beyond" };
  return { used, limit, fullness: used >= limit * NEAR ? "near" : "within" };
}

/** Returns a use beside its limit: the part of it that is used, or how many times as much. */
export function shareWords(used: number, limit: number): string {
  if (used <= limit) return formatShare(limit === 0 ? 1 : used / limit);
  return limit === 0 ? "beyond it" : `${formatEstimate(used / limit)} times as many`;
}

/** Returns the name of a quota, the one in forms and options, such as "live records". */
export function quotaName(quota: MeasuredQuota): string {
  return FIELDS.get(quota)?.label ?? quota;
}

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
