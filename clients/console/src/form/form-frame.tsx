import type { ReactNode } from "react";
import { DataTable } from "../parts/data-table.tsx";
import { ActionError } from "../parts/list-states.tsx";
import common from "../styles/common.module.css";
import styles from "../styles/parts.module.css";
import type { Form } from "./use-form.ts";

interface FormFrameProps<Field extends string, How, Outcome> {
  readonly form: Form<Field, How, Outcome>;
  /** A sentence, such as "This policy was changed while you edited it." */
  readonly changedEvent: string;
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
  wordsOf,
  action,
  mayBeUnchanged = false,
  children,
}: FormFrameProps<Field, How, Outcome>) {
  const { draft, changed, error } = form;
  return (
    <form
      className={styles.form}
      onBlur={form.check}
      onSubmit={(event) => {
        event.preventDefault();
        void form.review(draft);
      }}
    >
      <div role="alert">
        {draft.savedByOthers.length > 0 && (
          <div className={common.card} data-edge="warning">
            <DataTable
              caption={`${changedEvent} Nothing that you typed is lost: compare, and save again.`}
              columns={[
                ["Field", ({ field }) => form.drafts.fields[field].label],
                ["When you began", ({ field, before }) => wordsOf(field, before)],
                ["Saved now", ({ field, now }) => wordsOf(field, now)],
                [
                  "Yours",
                  ({ field, typed }) => (typed === undefined ? "not changed" : wordsOf(field, typed)),
                ],
              ]}
              rows={draft.savedByOthers}
              rowKey={({ field }) => field}
            />
            <button type="button" onClick={form.hideSavedByOthers}>
              I have read it
            </button>
          </div>
        )}
      </div>
      {children}
      <ActionError error={error} />
      <div className={`${common.row} ${styles.actions}`} data-changed={changed.length > 0}>
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
