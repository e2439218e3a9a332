import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type Policy,
  type PolicyBounds,
  PolicyBoundsSchema,
  PolicySchema,
  type Quotas,
  type TenantUsage,
} from "@onceward/client/proto";
import { fieldText, type TypedField, typedFields } from "./field-facts.ts";
import {
  amountWords,
  busiestMinute,
  type Fullness,
  MEASURED,
  type MeasuredQuota,
  quotaName,
  quotaUse,
  refusedOfBusiest,
} from "./quota-use.ts";
import { formatCount, formatNoun } from "./words.ts";

/** What new limits do to the present use of one quota. */
export interface LimitEffect {
  readonly quota: MeasuredQuota;
  /** Its name. */
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
      label: quotaName(quota),
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
      return `The count begins with the quota: whether it is used up is known seconds later.${isDryRun ? "" : " A quota dry run shows it without a refusal."}`;
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

const POLICY_FIELDS = typedFields(PolicySchema);

/** The bounds of policies, each with the field that it bounds, and whether it is the least value of it. */
export const BOUNDS = typedFields(PolicyBoundsSchema).map((bound) => ({
  bound,
  field: POLICY_FIELDS.find(({ path }) => bound.path === path || bound.path.slice("min_".length) === path),
  isLeast: bound.path.startsWith("min_"),
}));

/** Returns a sentence for each value of the tenant's policy that is beyond new bounds: it stays in force. */
export function beyondBounds(
  policy: Policy | undefined,
  bounds: PolicyBounds | undefined,
): readonly string[] {
  return BOUNDS.flatMap(({ bound, field, isLeast }) => {
    const value = field && fieldText(field, policy);
    const limit = fieldText(bound, bounds);
    if (!value || limit === "") return [];
    const above = amountOf(field, value) - amountOf(bound, limit);
    if (isLeast ? above >= 0 : above <= 0) return [];
    return [
      `The policy's ${field.label}, ${value}, is ${isLeast ? "below" : "above"} the new bound, ${limit}.`,
    ];
  });
}

function amountOf({ kind }: TypedField, text: string): number {
  const value = kind.parse(text);
  return typeof value === "object" ? durationMs(value as Duration) : Number(value);
}
