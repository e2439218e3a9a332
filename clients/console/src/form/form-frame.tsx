import type { ReactNode } from "react";
import { DataTable } from "../parts/data-table.tsx";
import { FailureText } from "../parts/list-states.tsx";
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

/** A field that another person saved while a form was open, in words. */
interface SavedField {
  readonly name: string;
  readonly before: string;
  readonly now: string;
  /** The form's value; undefined: it takes the saved one. */
  readonly typed: string | undefined;
}

/** Shows which fields others saved while a form was open: the value before, theirs, and the typed one. */
function SavedByOthers({
  event,
  fields,
  hide,
}: {
  /** A sentence, such as "This policy was changed while you edited it." */
  readonly event: string;
  readonly fields: readonly SavedField[];
  readonly hide: () => void;
}) {
  return (
    <div role="alert">
      {fields.length > 0 && (
        <div className={common.card} data-edge="warning">
          <DataTable
            caption={`${event} Nothing that you typed is lost: compare, and save again.`}
            columns={[
              ["Field", ({ name }) => name],
              ["When you began", ({ before }) => before],
              ["Saved now", ({ now }) => now],
              ["Yours", ({ typed }) => typed ?? "not changed"],
            ]}
            rows={fields}
            rowKey={({ name }) => name}
          />
          <button type="button" onClick={hide}>
            I have read it
          </button>
        </div>
      )}
    </div>
  );
}
