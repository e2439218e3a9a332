import { useMutation } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { FormEvent } from "react";
import { Dialog } from "../../parts/dialog.tsx";
import { SelectField, TextArea, TextField } from "../../parts/field.tsx";
import { FailureText } from "../../parts/list-states.tsx";
import { isResolvable, RESOLUTIONS, type ResolutionKind } from "../../parts/resolution/resolution.ts";
import { ResultFields } from "../../parts/resolution/result-fields.tsx";
import { TimeField } from "../../parts/time-field.tsx";
import { readFailure } from "../../session/failure.ts";
import { type BulkDraft, countRequest } from "./bulk.ts";
import styles from "./bulk-dialog.module.css";

/** How many records match. */
export interface Counted {
  readonly matching: bigint;
  /** There was no time to count all. */
  readonly isLowerBound: boolean;
}

interface BulkFormProps {
  readonly draft: BulkDraft;
  readonly change: (draft: BulkDraft) => void;
  readonly counted: (counted: Counted) => void;
  readonly close: () => void;
}

/** The first step: which records, how, and why. Its button counts them and changes nothing. */
export function BulkForm({ draft, change, counted, close }: BulkFormProps) {
  const count = useMutation(TenantAdminService.method.resolveAmbiguousRecords);

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const typed = { ...draft, ...selectionOf(event.currentTarget) };
    change(typed);
    const answer = await count.mutateAsync(countRequest(typed)).catch(() => undefined);
    if (answer !== undefined) counted(answer);
  }

  return (
    <Dialog title="Resolve all matching records" close={close}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <fieldset className={styles.row}>
          <legend>Which ambiguous records</legend>
          <TextField label="Namespace" name="namespace" defaultValue={draft.namespace} maxLength={63} />
          <TextField label="Owner" name="owner" defaultValue={draft.owner} maxLength={128} />
          <TextField
            label="Last checkpoint"
            name="checkpoint"
            defaultValue={draft.checkpoint}
            maxLength={128}
          />
          <TimeField label="Ambiguous since before" name="before" value={draft.before} />
        </fieldset>
        <SelectField
          label="Decision"
          help={RESOLUTIONS[draft.kind].meaning}
          value={draft.kind}
          onChange={({ target }) => change({ ...draft, kind: kindOf(target.value) })}
        >
          {Object.entries(RESOLUTIONS).map(([kind, { answer, verb }]) => (
            <option key={kind} value={kind}>
              {answer === verb ? verb : `${answer}: ${verb.toLowerCase()}`}
            </option>
          ))}
        </SelectField>
        {draft.kind === "complete" && (
          <ResultFields draft={draft.result} change={(result) => change({ ...draft, result })} />
        )}
        <TextArea
          label="Reason"
          help="Kept in the audit events."
          name="reason"
          defaultValue={draft.reason}
          required
          maxLength={1_024}
        />
        <div role="alert" className={styles.failure}>
          {count.error !== null && <FailureText failure={readFailure(count.error)} />}
        </div>
        <div className={styles.buttons}>
          <button type="submit" disabled={count.isPending || !isResolvable(draft.kind, draft.result)}>
            {count.isPending ? "Counting" : "Count the records"}
          </button>
          <span className={styles.note}>Changes nothing yet.</span>
        </div>
      </form>
    </Dialog>
  );
}

function selectionOf(form: HTMLFormElement) {
  const data = new FormData(form);
  const text = (name: string) => String(data.get(name) ?? "").trim();
  return {
    namespace: text("namespace"),
    owner: text("owner"),
    checkpoint: text("checkpoint"),
    before: text("before"),
    reason: text("reason"),
  };
}

function kindOf(value: string): ResolutionKind {
  return value === "complete" || value === "forget" ? value : "release";
}
