import { type Policy, PolicySchema } from "@onceward/client/proto";
import { fieldText, typedFields } from "#words/field-facts";
import { type Field, fieldOptions } from "./arguments.ts";

/** Some fields of a policy. */
export type PolicyInit = Partial<Omit<Policy, "$typeName" | "$unknown">>;

/** The word that unsets a field of a policy: the tenant's policy applies, or the service's. */
const INHERIT = "inherit";
const FIELDS = typedFields(PolicySchema);
const RETENTION = " retention";
const RETENTIONS = FIELDS.filter(({ label }) => label.endsWith(RETENTION));

/** The options of `retention set`, such as `--key`. */
export const RETENTION_FIELDS: readonly Field<PolicyInit>[] = fieldOptions(
  RETENTIONS.map((field) => ({ ...field, label: field.label.slice(0, -RETENTION.length) })),
  INHERIT,
);

/** An option for every field of a policy. */
export const POLICY_FIELDS: readonly Field<PolicyInit>[] = fieldOptions(FIELDS, INHERIT);

/** Returns a policy's fields as text for people; "-" for a field that is not set. */
export function policyRows(policy: Policy | undefined): readonly (readonly [label: string, value: string])[] {
  return FIELDS.map((field) => [field.label, fieldText(field, policy) || "-"]);
}
