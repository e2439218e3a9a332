import { type Dispatch, type SetStateAction, useLayoutEffect, useState } from "react";
import { useSession } from "../session/session.ts";
import { ofStorage } from "../session/store.ts";

const PREFIX = "onceward.console.draft";

/**
 * Holds a form's state as `useState` does, and keeps it in this tab while `isChanged`: what was typed outlives the end of the
 * session, and a sign-in at another site. The browser asks before a tab with a changed form is closed.
 *
 * @param form names the form within the tenant. The state has to be JSON.
 */
export function useKeptDraft<Draft extends object>(
  form: string,
  begin: () => Draft,
  isChanged: (draft: Draft) => boolean,
): readonly [Draft, Dispatch<SetStateAction<Draft>>] {
  const { role, tenant } = useSession();
  const key = [PREFIX, role, tenant, form].join(" ");
  const [draft, setDraft] = useState(() => readDraft(key, begin()));
  const isKept = isChanged(draft);
  useLayoutEffect(() => {
    if (!isKept) {
      writeDraft(key, undefined);
      return undefined;
    }
    writeDraft(key, draft);
    const ask = (event: Event) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [key, draft, isKept]);
  return [draft, setDraft];
}

/** Forgets what was typed in every form, when a person signs out. */
export function forgetDrafts(): void {
  const keys = ofStorage(() => Object.keys(sessionStorage), []);
  for (const key of keys.filter((each) => each.startsWith(PREFIX))) sessionStorage.removeItem(key);
}

/** Another version of the console may have kept a draft of another shape: then the form shows what is saved. */
function readDraft<Draft extends object>(key: string, first: Draft): Draft {
  const kept: unknown = ofStorage(() => JSON.parse(sessionStorage.getItem(key) ?? "null"), null);
  const isOfShape =
    typeof kept === "object" && kept !== null && Object.keys(first).every((name) => name in kept);
  return isOfShape ? (kept as Draft) : first;
}

function writeDraft(key: string, draft: object | undefined): void {
  ofStorage(() => {
    if (draft === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(draft));
  }, undefined);
}
