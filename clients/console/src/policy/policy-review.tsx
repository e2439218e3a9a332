import { Link } from "wouter";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { LateClaims } from "./late-claims.tsx";
import { changedFields, effectOnFields, type PolicyDraft } from "./policy-draft.ts";
import {
  canonicalText,
  fieldWords,
  POLICY_FIELDS,
  type PolicyText,
  RETENTION_FIELDS,
} from "./policy-fields.ts";

interface PolicyReviewProps {
  readonly subject: string;
  readonly action: string;
  readonly draft: PolicyDraft;
  /** The values in force before and after the change. */
  readonly now: PolicyText;
  readonly after: PolicyText;
  readonly retentionHref: string;
  readonly namespace: string;
  readonly act: () => Promise<unknown>;
  readonly close: () => void;
}

/** Asks before a policy is saved: what is set, and what is in force then, as the server answered. */
export function PolicyReview(props: PolicyReviewProps) {
  const { subject, action, draft, now, after, retentionHref, namespace, act, close } = props;
  const changed = changedFields(draft);
  const effect = effectOnFields(now, after);
  return (
    <ConfirmDialog title={`${action}: the policy of ${subject}?`} action={action} act={act} close={close}>
      {changed.length > 0 && (
        <ul>
          {changed.map((field) => (
            <li key={field}>
              {POLICY_FIELDS[field].label}: {fieldWords(field, draft.saved.own[field])} becomes{" "}
              <strong>{fieldWords(field, canonicalText(field, draft.typed[field]))}</strong>
            </li>
          ))}
        </ul>
      )}
      {effect.length === 0 ? (
        <p>No value in force changes.</p>
      ) : (
        <DataTable
          caption="Effective for new claims"
          columns={[
            { heading: "Field", cell: ({ field }) => POLICY_FIELDS[field].label },
            { heading: "Now", cell: (row) => fieldWords(row.field, row.now) },
            { heading: "Then", cell: (row) => fieldWords(row.field, row.after) },
          ]}
          rows={effect}
          rowKey={({ field }) => field}
        />
      )}
      {now.lateKeys !== after.lateKeys && <LateClaims namespace={namespace} choice={after.lateKeys} />}
      {effect.some(({ field }) => RETENTION_FIELDS.has(field)) && (
        <p>
          Records that exist keep their retention. <Link href={retentionHref}>The screen Retention</Link>{" "}
          shows how many duplicates would come too late, and changes existing records, too.
        </p>
      )}
    </ConfirmDialog>
  );
}
