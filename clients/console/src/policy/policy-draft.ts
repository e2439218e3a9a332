import type { RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import {
  canonicalText,
  FIELD_NAMES,
  fieldProblem,
  POLICY_FIELDS,
  type PolicyField,
  type PolicyInit,
  type PolicyText,
  parseField,
} from "./policy-fields.ts";

/** A policy as the server keeps it. */
export interface SavedPolicy {
  /** Empty: nothing is kept yet. */
  readonly etag: string;
  readonly own: PolicyText;
}

/** A form over a saved policy. */
export interface PolicyDraft {
  /** What the form began with. */
  readonly saved: SavedPolicy;
  readonly typed: PolicyText;
  /** What others saved after the form began, until it is acknowledged. */
  readonly savedByOthers: readonly SavedByOther[];
}

/** A field that another person changed while this form was open. */
export interface SavedByOther {
  readonly field: PolicyField;
  readonly before: string;
  readonly now: string;
  /** What this form has, if it differs from both; undefined: the form took the new value. */
  readonly typed: string | undefined;
}

/** Returns a form with nothing changed. */
export function startDraft(saved: SavedPolicy): PolicyDraft {
  return { saved, typed: saved.own, savedByOthers: [] };
}

/** Returns the form with a field typed. */
export function typeField(draft: PolicyDraft, field: PolicyField, text: string): PolicyDraft {
  return { ...draft, typed: { ...draft.typed, [field]: text } };
}

/** Returns the fields that saving would change. */
export function changedFields({ saved, typed }: PolicyDraft): readonly PolicyField[] {
  return FIELD_NAMES.filter((field) => isChanged(field, saved.own, typed));
}

/**
 * Returns the form over a newer state of the policy. What was typed stays; the other fields take their new values.
 * `savedByOthers` has the fields that another person changed, if anything was typed.
 */
export function followSaved(draft: PolicyDraft, latest: SavedPolicy): PolicyDraft {
  if (latest.etag === draft.saved.etag) return draft;
  const touched = new Set(changedFields(draft));
  const typed = { ...latest.own };
  for (const field of touched) typed[field as keyof typeof typed] = draft.typed[field];
  const remaining = { saved: latest, typed, savedByOthers: [] };
  if (changedFields(remaining).length === 0) return startDraft(latest);
  const savedByOthers = FIELD_NAMES.filter((field) => draft.saved.own[field] !== latest.own[field]).map(
    (field) => ({
      field,
      before: draft.saved.own[field],
      now: latest.own[field],
      typed: isChanged(field, latest.own, typed) ? canonicalText(field, typed[field]) : undefined,
    }),
  );
  return { ...remaining, savedByOthers };
}

/** What a form asks the server to change, or why it can't be asked. */
export interface PolicyRequest {
  readonly policy: PolicyInit;
  /** Paths for `update_mask`. */
  readonly paths: string[];
  readonly problems: Readonly<Partial<Record<PolicyField, string>>>;
}

/** Reads the changed fields: the others may hold values that this version of the console does not know. */
export function readDraft(draft: PolicyDraft): PolicyRequest {
  const policy: PolicyInit = {};
  const problems: Partial<Record<PolicyField, string>> = {};
  const fields = changedFields(draft);
  for (const field of fields) {
    const parsed = parseField(field, draft.typed[field]);
    if (parsed === undefined) problems[field] = fieldProblem(field);
    else Object.assign(policy, parsed);
  }
  return { policy, paths: fields.map((field) => `policy.${POLICY_FIELDS[field].path}`), problems };
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

function isChanged(field: PolicyField, saved: PolicyText, typed: PolicyText): boolean {
  return saved[field] !== typed[field] && saved[field] !== canonicalText(field, typed[field]);
}
