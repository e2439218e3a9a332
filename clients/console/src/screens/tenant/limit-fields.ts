import type { DescMessage } from "@bufbuild/protobuf";
import { PolicyBoundsSchema, QuotasSchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { fieldText, type TypedField } from "@onceward/words/field-facts";
import { createDrafts, type FieldTexts } from "../../form/draft.ts";
import { formFields, valueWords } from "../../form/fields.ts";

/** A limit that the operator sets; its path is the one in an update mask of the tenant. */
export interface LimitField extends TypedField {
  readonly group: "policyBounds" | "quotas";
}

/** Every limit, in the order of the form. */
export const LIMIT_FIELDS: readonly LimitField[] = [
  ...limitsOf("quotas", "quotas", QuotasSchema),
  ...limitsOf("policyBounds", "policy_bounds", PolicyBoundsSchema),
];

function limitsOf(group: LimitField["group"], prefix: string, schema: DescMessage): readonly LimitField[] {
  return formFields(schema).map((field) => ({ ...field, group, path: `${prefix}.${field.path}` }));
}

/** Limits as a person types them, by path; empty: not set. */
export type LimitTexts = FieldTexts<string>;

const BY_PATH = Object.fromEntries(LIMIT_FIELDS.map((field) => [field.path, field] as const));

/** The drafts of a tenant's limits. */
export const LIMIT_DRAFTS = createDrafts<string>(BY_PATH);

/** Returns a tenant's limits as a person types them. */
export function limitTexts(tenant: Pick<Tenant, "policyBounds" | "quotas">): LimitTexts {
  return Object.fromEntries(LIMIT_FIELDS.map((field) => [field.path, fieldText(field, tenant[field.group])]));
}

/** Reads the fields of `paths` for a request: some fields of PolicyBounds and Quotas, by their names. */
export function parseLimits(texts: LimitTexts, paths: readonly string[]) {
  const { values, problems } = LIMIT_DRAFTS.read(texts, paths);
  const given = LIMIT_FIELDS.filter(({ path }) => path in values);
  const ofGroup = (group: LimitField["group"]) =>
    Object.fromEntries(
      given.flatMap((field) => (field.group === group ? [[field.name, values[field.path]]] : [])),
    );
  return { policyBounds: ofGroup("policyBounds"), quotas: ofGroup("quotas"), problems };
}

/** Returns a limit as a person reads it, such as "10,000"; without a text, what applies where it is not set. */
export function limitWords(path: string, text = ""): string {
  const field = BY_PATH[path];
  return field === undefined || text.trim() === "" ? (field?.unset ?? "") : valueWords(field.kind, text);
}
