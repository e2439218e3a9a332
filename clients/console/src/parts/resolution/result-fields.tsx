import common from "../../styles/common.module.css";
import styles from "../../styles/parts.module.css";
import { SelectField, TextArea, TextField } from "../field.tsx";
import { checkResult, type ResultDraft } from "./resolution.ts";

interface ResultFieldsProps {
  readonly draft: ResultDraft;
  readonly change: (draft: ResultDraft) => void;
  /** Ask for the status that an HTTP endpoint replays, too. */
  readonly isHttp?: boolean;
}

/** The fields of the result that a completion stores. */
export function ResultFields({ draft, change, isHttp = false }: ResultFieldsProps) {
  const problems = checkResult(draft);
  return (
    <div className={common.stack}>
      <div className={styles.fieldRow}>
        <SelectField
          label="Outcome"
          value={draft.outcome}
          options={{ success: "Success", failure: "Permanent failure" }}
          onChange={({ target }) =>
            change({ ...draft, outcome: target.value === "failure" ? "failure" : "success" })
          }
        />
        <TextField
          label="Media type"
          problem={problems.contentType}
          value={draft.contentType}
          onChange={({ target }) => change({ ...draft, contentType: target.value })}
        />
      </div>
      {isHttp && draft.outcome === "success" && (
        <TextField
          label="HTTP status"
          help="Duplicates get the result with it, such as 201. Empty: 410, without the result."
          problem={problems.httpStatus}
          value={draft.httpStatus}
          onChange={({ target }) => change({ ...draft, httpStatus: target.value })}
        />
      )}
      <TextArea
        label="Result"
        help="For each record that happened, unless an imported file of answers has one for it: its duplicates get it, byte for byte. Can be empty."
        problem={problems.text}
        rows={5}
        spellCheck={false}
        className={common.mono}
        value={draft.text}
        onChange={({ target }) => change({ ...draft, text: target.value })}
      />
    </div>
  );
}
