import common from "../styles/common.module.css";
import { DataTable } from "./data-table.tsx";

/** A field that another person saved while a form was open, in words. */
export interface SavedField {
  readonly name: string;
  readonly before: string;
  readonly now: string;
  /** The form's value; undefined: it takes the saved one. */
  readonly typed: string | undefined;
}

/** Shows which fields others saved while a form was open: the value before, theirs, and the typed one. */
export function SavedByOthers({
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
