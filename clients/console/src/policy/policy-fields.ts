import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Policy, PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { fieldText, type TypedField } from "@onceward/words/field-facts";
import { createDrafts, type Draft, type FieldTexts, type SavedTexts } from "../form/draft.ts";
import { formFields, valueWords } from "../form/fields.ts";

/** A field of a policy, as messages name it. */
export type PolicyField = Exclude<keyof Policy, "$typeName" | "$unknown">;

/** Each field as a person types it, in the forms of the command line; empty: not set, so inherited. */
export type PolicyText = FieldTexts<PolicyField>;

/** Every field of a policy, in the order of the screens. */
export const POLICY_FIELDS = Object.fromEntries(
  formFields(PolicySchema).map((field) => [field.name, field] as const),
) as Readonly<Record<PolicyField, TypedField>>;

/** The names of all fields, in the order of the screens. */
export const FIELD_NAMES = Object.keys(POLICY_FIELDS) as readonly PolicyField[];

/** The fields whose change concerns records that exist, of which the review shows what becomes of them. */
export const RETENTION_FIELDS = new Set<PolicyField>(["keyRetention", "resultRetention", "failureRetention"]);

/** The drafts of a policy. */
export const POLICY_DRAFTS = createDrafts<PolicyField>(POLICY_FIELDS);

/** Returns the fields that a policy sets, as a person types them. */
export function policyText(policy: Policy | undefined): PolicyText {
  const texts = FIELD_NAMES.map((field) => [field, fieldText(POLICY_FIELDS[field], policy)] as const);
  return Object.fromEntries(texts) as PolicyText;
}

/** Returns a field's text in words, such as "72h" or "64KiB". */
export function fieldWords(field: PolicyField, text: string): string {
  return text === "" ? "inherited" : valueWords(POLICY_FIELDS[field].kind, text);
}

/** Returns a field's text in force in words; without one, what applies where it is not set. */
export function inForceWords(field: PolicyField, text: string): string {
  return text === "" ? POLICY_FIELDS[field].unset : fieldWords(field, text);
}

/** A policy as the server keeps it. */
export type SavedPolicy = SavedTexts<PolicyField>;

/** A form over a saved policy. */
export type PolicyDraft = Draft<PolicyField>;

/** Reads the changed fields, for a request: the others may hold values that this version of the console does not know. */
export function readDraft(draft: PolicyDraft) {
  const fields = POLICY_DRAFTS.changed(draft);
  const { values, problems } = POLICY_DRAFTS.read(draft.typed, fields);
  const paths = fields.map((field) => `policy.${POLICY_FIELDS[field].path}`);
  return { policy: values as MessageInitShape<typeof PolicySchema>, paths, problems };
}

/** Returns the field that a refused path such as "namespace.policy.key_retention" names; undefined: another one. */
export function fieldOfPath(path: string): PolicyField | undefined {
  const last = path.slice(path.lastIndexOf(".") + 1);
  return FIELD_NAMES.find((field) => POLICY_FIELDS[field].path === last);
}

/** What a change does, or did. */
export interface PolicyOutcome {
  /** The values in force after it. */
  readonly inForce: PolicyText;
  /** What `applyToExisting` would do to stored records; set by `validateOnly`. */
  readonly effect: RetentionEffect | undefined;
  /** The job that changes stored records; undefined: none. */
  readonly jobId: bigint | undefined;
}

/** Returns the fields whose value in force changes. */
export function changedInForce(now: PolicyText, after: PolicyText): readonly PolicyField[] {
  return FIELD_NAMES.filter((field) => now[field] !== after[field]);
}
