import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { createDrafts, type Draft, type SavedTexts } from "../form/draft.ts";
import { canonicalText, maskName } from "../form/field-kinds.ts";
import { FIELD_NAMES, POLICY_FIELDS, type PolicyField, type PolicyText } from "./policy-fields.ts";

/** A policy as the server keeps it. */
export type SavedPolicy = SavedTexts<PolicyField>;

/** A form over a saved policy. */
export type PolicyDraft = Draft<PolicyField>;

/** The drafts of a policy. */
export const POLICY_DRAFTS = createDrafts(FIELD_NAMES, (field, text) =>
  canonicalText(POLICY_FIELDS[field].kind, text),
);

/** What a form asks the server to change, or why it can't be asked. */
export interface PolicyRequest {
  readonly policy: MessageInitShape<typeof PolicySchema>;
  /** Paths for `update_mask`. */
  readonly paths: string[];
  readonly problems: Readonly<Partial<Record<PolicyField, string>>>;
}

/** Reads the changed fields: the others may hold values that this version of the console does not know. */
export function readDraft(draft: PolicyDraft): PolicyRequest {
  const policy: Partial<Record<PolicyField, unknown>> = {};
  const problems: Partial<Record<PolicyField, string>> = {};
  const fields = POLICY_DRAFTS.changed(draft);
  for (const field of fields) {
    const text = draft.typed[field].trim();
    if (text === "") continue;
    const { kind } = POLICY_FIELDS[field];
    policy[field] = kind.parse(text);
    if (policy[field] === undefined) problems[field] = kind.example;
  }
  return {
    policy: policy as PolicyRequest["policy"],
    paths: fields.map((field) => `policy.${maskName(field)}`),
    problems,
  };
}

/** Returns the field that a refused path such as "namespace.policy.key_retention" names; undefined: another one. */
export function fieldOfPath(path: string): PolicyField | undefined {
  const last = path.slice(path.lastIndexOf(".") + 1);
  return FIELD_NAMES.find((field) => maskName(field) === last);
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

/** A value that would be in force after saving, beside the present one. */
export interface EffectOnField {
  readonly field: PolicyField;
  readonly now: string;
  readonly after: string;
}

/** Returns the fields whose value in force changes. */
export function effectOnFields(now: PolicyText, after: PolicyText): readonly EffectOnField[] {
  return FIELD_NAMES.filter((field) => now[field] !== after[field]).map((field) => ({
    field,
    now: now[field],
    after: after[field],
  }));
}
