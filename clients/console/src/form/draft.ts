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
export interface Drafts<Field extends string> {
  /** Returns a form with nothing changed. */
  start(saved: SavedTexts<Field>): Draft<Field>;
  /** Returns the form with a field typed. */
  type(draft: Draft<Field>, field: Field, text: string): Draft<Field>;
  /** Returns the fields that saving would change: by another value, not by another way to write it. */
  changed(draft: Draft<Field>): readonly Field[];
  /**
   * Returns the form over a newer state. What was typed stays; the other fields take their new values. `savedByOthers` has the
   * fields that another person changed, if anything was typed.
   */
  follow(draft: Draft<Field>, latest: SavedTexts<Field>): Draft<Field>;
}

/** @param canonical returns a field's text in the one form that saved texts have. */
export function createDrafts<Field extends string>(
  names: readonly Field[],
  canonical: (field: Field, text: string) => string,
): Drafts<Field> {
  const start = (saved: SavedTexts<Field>): Draft<Field> => ({ saved, typed: saved.own, savedByOthers: [] });
  const isChanged = (field: Field, saved: FieldTexts<Field>, typed: FieldTexts<Field>) =>
    saved[field] !== typed[field] && saved[field] !== canonical(field, typed[field]);
  const changed = ({ saved, typed }: Draft<Field>) =>
    names.filter((field) => isChanged(field, saved.own, typed));
  return {
    start,
    changed,
    type: (draft, field, text) => ({ ...draft, typed: { ...draft.typed, [field]: text } }),
    follow(draft, latest) {
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
    },
  };
}
