import { useState } from "react";
import { useKeptDraft } from "../parts/kept-draft.ts";
import { FailureText } from "../parts/list-states.tsx";
import { useNotice } from "../parts/notice.tsx";
import { SavedByOthers, type SavedField } from "../parts/saved-by-others.tsx";
import { type Failure, readFailure } from "../session/failure.ts";
import {
  changedFields,
  fieldOfPath,
  followSaved,
  type PolicyDraft,
  type PolicyOutcome,
  readDraft,
  type SavedByOther,
  type SavedPolicy,
  startDraft,
  typeField,
} from "./policy-draft.ts";
import styles from "./policy-editor.module.css";
import {
  FIELD_NAMES,
  fieldWords,
  POLICY_FIELDS,
  type PolicyField,
  type PolicyInit,
  type PolicyText,
} from "./policy-fields.ts";
import { PolicyReview } from "./policy-review.tsx";
import { PolicyRow } from "./policy-row.tsx";

/** A change of a policy, for the RPC of its resource. */
export interface PolicyChange {
  readonly policy: PolicyInit;
  readonly paths: string[];
  readonly etag: string;
  readonly validateOnly: boolean;
  /** Change the retention of stored records, too. */
  readonly applyToExisting: boolean;
}

/** A policy, and how it is changed. */
export interface PolicyEditorProps {
  /** What the policy is of, in a sentence: "the namespace charges". */
  readonly subject: string;
  readonly saved: SavedPolicy;
  /** The values in force, with the inherited ones. */
  readonly inForce: PolicyText;
  /** What the tenant sets; undefined: the policy is the tenant's own. */
  readonly tenantOwn?: PolicyText;
  /** The namespace that the policy is of; "" for the tenant's. */
  readonly namespace: string;
  /** The button, such as "Save". A form that may be saved without a change says so with `mayBeUnchanged`. */
  readonly action: string;
  readonly mayBeUnchanged?: boolean;
  /** Sends a change, and returns what it does. */
  readonly send: (change: PolicyChange) => Promise<PolicyOutcome>;
  /** Reads the policy once more. */
  readonly reload: () => Promise<SavedPolicy>;
  /** Called after a change was saved. */
  readonly onSaved?: (inForce: PolicyText) => void;
}

type Problems = Readonly<Partial<Record<PolicyField, string>>>;

/** Reasons that mean that the policy is no longer what the form began with. */
const CHANGED_MEANWHILE = new Set(["ETAG_MISMATCH", "NAMESPACE_NOT_FOUND"]);

/**
 * A form over the fields of a policy: own values beside the inherited ones. The server checks a change before it is
 * confirmed, and refuses it if another person saved first; then both values are shown, and what was typed stays.
 */
export function PolicyEditor({ form, ...props }: PolicyEditorProps & { readonly form: PolicyForm }) {
  const { subject, saved, inForce, tenantOwn, action, mayBeUnchanged = false } = props;
  const { draft, setDraft, problems, failure, waiting, outcome } = form;
  const changed = changedFields(draft);
  return (
    <>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          void form.review(draft);
        }}
      >
        <SavedByOthers
          event="This policy was changed while you edited it."
          fields={draft.savedByOthers.map(inWords)}
          hide={() => setDraft({ ...draft, savedByOthers: [] })}
        />
        <div className={styles.head} aria-hidden="true">
          <span>Field</span>
          <span>Own value</span>
          <span>Inherited</span>
          <span>Effective</span>
        </div>
        {FIELD_NAMES.map((field) => (
          <PolicyRow
            key={field}
            field={field}
            text={draft.typed[field]}
            savedText={saved.own[field]}
            isChanged={changed.includes(field)}
            inForce={inForce[field]}
            tenantOwn={tenantOwn}
            problem={problems[field]}
            type={(text) => setDraft(typeField(draft, field, text))}
          />
        ))}
        <div role="alert" className={styles.failure}>
          {failure !== undefined && <FailureText failure={failure} />}
        </div>
        <div className={styles.buttons}>
          <button type="submit" disabled={waiting || (changed.length === 0 && !mayBeUnchanged)}>
            {action}
          </button>
          <button
            type="button"
            disabled={changed.length === 0}
            onClick={() => setDraft(startDraft(draft.saved))}
          >
            Undo all
          </button>
          <span className={styles.count} role="status">
            {changed.length > 0 && `${changed.length} changed`}
          </span>
        </div>
      </form>
      {outcome !== undefined && (
        <PolicyReview
          subject={subject}
          action={action}
          draft={draft}
          now={inForce}
          outcome={outcome}
          namespace={props.namespace}
          act={form.save}
          close={form.closeReview}
        />
      )}
    </>
  );
}

/** The state of a form over a policy, for its editor and for what is shown beside it. */
export type PolicyForm = ReturnType<typeof usePolicyForm>;

/** Holds the form over a policy. */
export function usePolicyForm({ subject, saved, send, reload, onSaved }: PolicyEditorProps) {
  const notify = useNotice();
  const [state, setDraft] = useKeptDraft<PolicyDraft>(
    `policy of ${subject}`,
    () => startDraft(saved),
    (given) => changedFields(given).length > 0,
  );
  const [problems, setProblems] = useState<Problems>({});
  const [failure, setFailure] = useState<Failure>();
  const [waiting, setWaiting] = useState(false);
  /** What the change does, while it is confirmed. */
  const [outcome, setOutcome] = useState<PolicyOutcome>();
  // A newer state can arrive with any answer; followed here, no frame shows the older one.
  const draft = followSaved(state, saved);
  if (draft !== state) setDraft(draft);

  async function request(
    given: PolicyDraft,
    how: Pick<PolicyChange, "validateOnly" | "applyToExisting">,
  ): Promise<PolicyOutcome | undefined> {
    const { policy, paths } = readDraft(given);
    const { etag } = given.saved;
    // A policy that does not exist has no etag that the server could compare.
    const isStale = etag === "" && (await reload()).etag !== "";
    if (isStale) return undefined;
    try {
      return await send({ policy, paths, etag, ...how });
    } catch (error) {
      if (!CHANGED_MEANWHILE.has(readFailure(error).reason)) throw error;
      await reload();
      return undefined;
    }
  }

  /** Asks for the change of a draft, once the server has said what it does. */
  async function review(given: PolicyDraft): Promise<void> {
    const { problems: unread } = readDraft(given);
    setProblems(unread);
    setFailure(undefined);
    if (Object.keys(unread).length > 0) return;
    setWaiting(true);
    try {
      setOutcome(await request(given, { validateOnly: true, applyToExisting: false }));
    } catch (error) {
      const refused = readFailure(error);
      const known = refused.violations.flatMap(({ field, description }) => {
        const name = fieldOfPath(field);
        return name === undefined ? [] : [[name, `It ${description}.`]];
      });
      setProblems(Object.fromEntries(known));
      if (known.length === 0 || known.length < refused.violations.length) setFailure(refused);
    } finally {
      setWaiting(false);
    }
  }

  async function save(applyToExisting: boolean): Promise<void> {
    const result = await request(draft, { validateOnly: false, applyToExisting });
    if (result === undefined) return;
    await reload();
    onSaved?.(result.inForce);
    const job = result.jobId === undefined ? "" : ` Job ${result.jobId} changes the stored records.`;
    notify(`Saved the policy of ${subject}. Every replica follows within 10 s.${job}`);
  }

  return {
    ...{ draft, setDraft, problems, failure, waiting, outcome, review, save },
    closeReview: () => setOutcome(undefined),
  };
}

function inWords({ field, before, now, typed }: SavedByOther): SavedField {
  return {
    name: POLICY_FIELDS[field].label,
    before: fieldWords(field, before),
    now: fieldWords(field, now),
    typed: typed === undefined ? undefined : fieldWords(field, typed),
  };
}
