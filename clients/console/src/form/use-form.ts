import { useState } from "react";
import { useKeptDraft } from "../parts/kept-draft.ts";
import { readFailure } from "../session/failure.ts";
import type { Draft, Drafts, SavedTexts } from "./draft.ts";

/** Why fields can't be saved, with what to type instead. */
export type Problems<Field extends string> = Readonly<Partial<Record<Field, string>>>;

/** A form, and how it is saved. */
export interface FormOptions<Field extends string, How, Outcome> {
  /** Names the form within the tenant. */
  readonly name: string;
  readonly drafts: Drafts<Field>;
  readonly saved: SavedTexts<Field>;
  /** Returns the problems of changed fields that can't be read. */
  readonly problemsOf: (draft: Draft<Field>) => Problems<Field>;
  /** Returns the field that a refused path of a request names; undefined: another one. */
  readonly fieldOfPath: (path: string) => Field | undefined;
  /** Sends a change, and returns what it does. */
  readonly send: (draft: Draft<Field>, how: How) => Promise<Outcome>;
  /** How a change is sent to see what it would do. */
  readonly preview: How;
  /** Reads the saved state once more. */
  readonly reload: () => Promise<{ readonly etag: string }>;
}

/** A form's state. */
export type Form<Field extends string, How, Outcome> = ReturnType<typeof useForm<Field, How, Outcome>>;

/** Reasons that mean that the saved state is no longer what the form began with. */
const CHANGED_MEANWHILE = new Set(["ETAG_MISMATCH", "NAMESPACE_NOT_FOUND"]);

/**
 * Holds a form: what is typed, why it is refused, and what it would do. The server checks a change before it is confirmed, and
 * refuses it if another person saved first; then both values are shown, and what was typed stays.
 */
export function useForm<Field extends string, How, Outcome>(options: FormOptions<Field, How, Outcome>) {
  const { name, drafts, saved, problemsOf, fieldOfPath, send, preview, reload } = options;
  const [state, setDraft] = useKeptDraft<Draft<Field>>(
    name,
    () => drafts.start(saved),
    (given) => drafts.changed(given).length > 0,
  );
  const [problems, setProblems] = useState({} as Problems<Field>);
  const [error, setError] = useState<unknown>();
  const [isWaiting, setWaiting] = useState(false);
  /** What the change does, while it is confirmed. */
  const [outcome, setOutcome] = useState<Outcome>();
  // A newer state can arrive with any answer; followed here, no frame shows the older one.
  const draft = drafts.follow(state, saved);
  if (draft !== state) setDraft(draft);

  /** Sends a draft. Resolves with undefined if another person saved first: then the form follows. */
  async function request(given: Draft<Field>, how: How): Promise<Outcome | undefined> {
    // What does not exist has no etag that the server could compare.
    const isStale = given.saved.etag === "" && (await reload()).etag !== "";
    if (isStale) return undefined;
    try {
      return await send(given, how);
    } catch (error) {
      if (!CHANGED_MEANWHILE.has(readFailure(error).reason)) throw error;
      await reload();
      return undefined;
    }
  }

  /** Shows the problems of what is typed; those that the server found stay if there is none. */
  function check(): void {
    const unread = problemsOf(draft);
    if (Object.keys(unread).length > 0) setProblems(unread);
  }

  function type(field: Field, text: string): void {
    setProblems(({ [field]: _, ...others }) => others as Problems<Field>);
    setDraft(drafts.type(draft, field, text));
  }

  /** Asks for the change of a draft, once the server has said what it does. */
  async function review(given: Draft<Field>): Promise<void> {
    const unread = problemsOf(given);
    setProblems(unread);
    setError(undefined);
    if (Object.keys(unread).length > 0) return;
    setWaiting(true);
    try {
      setOutcome(await request(given, preview));
    } catch (thrown) {
      const refused = readFailure(thrown);
      const found = refused.violations.flatMap(({ field, description }) => {
        const known = fieldOfPath(field);
        return known === undefined ? [] : [[known, `It ${description}.`]];
      });
      setProblems(Object.fromEntries(found) as Problems<Field>);
      if (found.length === 0 || found.length < refused.violations.length) setError(thrown);
    } finally {
      setWaiting(false);
    }
  }

  return {
    ...{ drafts, draft, setDraft, problems, error, isWaiting, outcome, review, check, type },
    changed: drafts.changed(draft),
    save: (how: How) => request(draft, how),
    undo: () => setDraft(drafts.start(draft.saved)),
    hideSavedByOthers: () => setDraft({ ...draft, savedByOthers: [] }),
    closeReview: () => setOutcome(undefined),
  };
}
