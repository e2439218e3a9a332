import {
  type PolicyBounds,
  PolicyBoundsSchema,
  type Quotas,
  QuotasSchema,
  type Tenant,
} from "@onceward/client/proto";
import { fieldText, typedFields } from "#words/field-facts";
import { BOUNDS } from "#words/limit-effect";
import { type Field, fieldOptions } from "./arguments.ts";

type BoundsInit = Partial<Omit<PolicyBounds, "$typeName" | "$unknown">>;
type QuotasInit = Partial<Omit<Quotas, "$typeName" | "$unknown">>;

/** The word that unsets a limit, so that only the contract's limits apply. */
const NONE = "none";
const QUOTAS = typedFields(QuotasSchema);

/** The options for the bounds of a tenant's policies. */
export const BOUNDS_FIELDS: readonly Field<BoundsInit>[] = fieldOptions(
  typedFields(PolicyBoundsSchema),
  NONE,
);

/** The options for a tenant's quotas. */
export const QUOTA_FIELDS: readonly Field<QuotasInit>[] = fieldOptions(QUOTAS, NONE);

/** Returns the bounds of a policy's field that are set, such as "≥ 1h, ≤ 30d". @param label the field's. */
export function boundText(bounds: PolicyBounds | undefined, label: string): string {
  return BOUNDS.filter(({ bound, field }) => field?.label === label && fieldText(bound, bounds) !== "")
    .map(({ bound, isLeast }) => `${isLeast ? "≥" : "≤"} ${fieldText(bound, bounds)}`)
    .join(", ");
}

/** Returns the quotas that apply, as text for people. */
export function quotaRows(quotas: Quotas | undefined): readonly (readonly [label: string, value: string])[] {
  return QUOTAS.map((field) => [field.label, fieldText(field, quotas) || field.unset]);
}

/** Returns all limits of a tenant, as text for people. */
export function limitRows({
  policyBounds,
  quotas,
}: Tenant): readonly (readonly [label: string, value: string])[] {
  const bounds = BOUNDS.map(
    ({ bound }) => [bound.label, fieldText(bound, policyBounds) || bound.unset] as const,
  );
  return [...bounds, ...quotaRows(quotas)];
}
