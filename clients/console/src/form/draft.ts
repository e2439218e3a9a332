import type { TypedField } from "@onceward/words/field-facts";
import { canonicalText } from "./fields.ts";

/** The fields of a form as a person types them, by name. */
export type FieldTexts<Field extends string> = Readonly<Record<Field, string>>;

/** What the server keeps of the fields. */
export interface SavedTexts<Field extends string> {
  /** Empty: nothing is kept yet. */
  readonly etag: string;
  readonly own: FieldTexts<Field>;
}

/** A form over saved fields. */
export interface Draft<Field extends string> {
  /** What the form began with. */
  readonly saved: SavedTexts<Field>;
  readonly typed: FieldTexts<Field>;
  /** What others saved after the form began, until it is acknowledged. */
  readonly savedByOthers: readonly SavedByOther<Field>[];
}

/** A field that another person changed while a form was open. */
export interface SavedByOther<Field extends string> {
  readonly field: Field;
  readonly before: string;
  readonly now: string;
  /** What the form has, if it differs from both; undefined: the form took the new value. */
  readonly typed: string | undefined;
}

/** The drafts of one form. */
export type Drafts<Field extends string> = ReturnType<typeof createDrafts<Field>>;

/** Returns the drafts of a form over fields. */
export function createDrafts<Field extends string>(fields: Readonly<Record<Field, TypedField>>) {
  const names = Object.keys(fields) as Field[];
  const canonical = (field: Field, text: string) => canonicalText(fields[field].kind, text);
  const isChanged = (field: Field, saved: FieldTexts<Field>, typed: FieldTexts<Field>) =>
    saved[field] !== typed[field] && saved[field] !== canonical(field, typed[field]);

  /** Returns a form with nothing changed. */
  function start(saved: SavedTexts<Field>): Draft<Field> {
    return { saved, typed: saved.own, savedByOthers: [] };
  }
  /** Returns the fields that saving would change: by another value, not by another way to write it. */
  function changed({ saved, typed }: Draft<Field>): readonly Field[] {
    return names.filter((field) => isChanged(field, saved.own, typed));
  }
  /** Returns the form with a field typed. */
  function type(draft: Draft<Field>, field: Field, text: string): Draft<Field> {
    return { ...draft, typed: { ...draft.typed, [field]: text } };
  }
  /** Reads some fields; an empty text unsets its field. `problems` has what to type instead of a text that can't be read, or is out of range. */
  function read(texts: FieldTexts<Field>, some: readonly Field[]) {
    const values: Partial<Record<Field, unknown>> = {};
    const problems: Partial<Record<Field, string>> = {};
    for (const field of names.filter((name) => some.includes(name) && texts[name].trim() !== "")) {
      const text = texts[field].trim();
      const problem = fields[field].problemOf(text);
      if (problem !== undefined) problems[field] = problem;
      else values[field] = fields[field].kind.parse(text);
    }
    return { values, problems };
  }
  /**
   * Returns the form over a newer state. What was typed stays; the other fields take their new values. `savedByOthers` has the
   * fields that another person changed, if anything was typed.
   */
  function follow(draft: Draft<Field>, latest: SavedTexts<Field>): Draft<Field> {
    if (latest.etag === draft.saved.etag) return draft;
    const touched = changed(draft).map((field) => [field, draft.typed[field]] as const);
    const typed = { ...latest.own, ...Object.fromEntries(touched) };
    const remaining = { saved: latest, typed, savedByOthers: [] };
    if (changed(remaining).length === 0) return start(latest);
    const savedByOthers = names
      .filter((field) => draft.saved.own[field] !== latest.own[field])
      .map((field) => ({
        field,
        before: draft.saved.own[field],
        now: latest.own[field],
        typed: isChanged(field, latest.own, typed) ? canonical(field, typed[field]) : undefined,
      }));
    return { ...remaining, savedByOthers };
  }
  return { fields, start, changed, type, read, follow };
}
