import { DataTable } from "../parts/data-table.tsx";
import type { SavedByOther } from "./policy-draft.ts";
import styles from "./policy-editor.module.css";
import { fieldWords, POLICY_FIELDS } from "./policy-fields.ts";

/** Shows which fields another person saved while the form was open: the value before, theirs, and the typed one. */
export function SavedByOthersPanel({
  savedByOthers,
  hide,
}: {
  readonly savedByOthers: readonly SavedByOther[];
  readonly hide: () => void;
}) {
  return (
    <div role="alert">
      {savedByOthers.length > 0 && (
        <div className={styles.savedByOthers}>
          <DataTable
            caption="This policy was changed while you edited it. Nothing that you typed is lost: compare, and save again."
            columns={[
              { heading: "Field", cell: ({ field }) => POLICY_FIELDS[field].label },
              { heading: "When you began", cell: ({ field, before }) => fieldWords(field, before) },
              { heading: "Saved now", cell: ({ field, now }) => fieldWords(field, now) },
              {
                heading: "Yours",
                cell: ({ field, typed }) => (typed === undefined ? "not changed" : fieldWords(field, typed)),
              },
            ]}
            rows={savedByOthers}
            rowKey={({ field }) => field}
          />
          <button type="button" onClick={hide}>
            I have read it
          </button>
        </div>
      )}
    </div>
  );
}
