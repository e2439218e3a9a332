import type { ReactNode } from "react";
import { FailureText } from "../parts/list-states.tsx";
import { SavedByOthers } from "../parts/saved-by-others.tsx";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import type { SavedByOther } from "./draft.ts";
import type { Form } from "./use-form.ts";

interface FormFrameProps<Field extends string, How, Outcome> {
  readonly form: Form<Field, How, Outcome>;
  /** A sentence, such as "This policy was changed while you edited it." */
  readonly changedEvent: string;
  readonly labelOf: (field: Field) => string;
  readonly wordsOf: (field: Field, text: string) => string;
  /** The button that asks for the change. A form that may be saved without a change says so with `mayBeUnchanged`. */
  readonly action: string;
  readonly mayBeUnchanged?: boolean;
  readonly children: ReactNode;
}

/** A form's fields between what others saved meanwhile, and its buttons with why the change was refused. */
export function FormFrame<Field extends string, How, Outcome>({
  form,
  changedEvent,
  labelOf,
  wordsOf,
  action,
  mayBeUnchanged = false,
  children,
}: FormFrameProps<Field, How, Outcome>) {
  const { draft, changed, failure } = form;
  const inWords = ({ field, before, now, typed }: SavedByOther<Field>) => ({
    name: labelOf(field),
    before: wordsOf(field, before),
    now: wordsOf(field, now),
    typed: typed === undefined ? undefined : wordsOf(field, typed),
  });
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        void form.review(draft);
      }}
    >
      <SavedByOthers
        event={changedEvent}
        fields={draft.savedByOthers.map(inWords)}
        hide={form.hideSavedByOthers}
      />
      {children}
      <div role="alert" className={common.problem}>
        {failure !== undefined && <FailureText failure={failure} />}
      </div>
      <div className={common.row}>
        <button type="submit" disabled={form.isWaiting || (changed.length === 0 && !mayBeUnchanged)}>
          {action}
        </button>
        <button type="button" disabled={changed.length === 0} onClick={form.undo}>
          Undo all
        </button>
        <span className={common.quiet} role="status">
          {changed.length > 0 && `${changed.length} changed`}
        </span>
      </div>
    </form>
  );
}
