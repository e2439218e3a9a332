import type { RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { forgottenWords } from "@onceward/words/retention-effect";
import { useState } from "react";
import { canonicalText } from "../form/fields.ts";
import { parseDuration } from "../format/duration.ts";
import { formatNoun } from "../format/quantity.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { MisspeltNote } from "../parts/namespace-links.tsx";
import { LateClaims } from "./late-claims.tsx";
import {
  changedInForce,
  fieldWords,
  inForceWords,
  POLICY_DRAFTS,
  POLICY_FIELDS,
  type PolicyDraft,
  type PolicyOutcome,
  type PolicyText,
  RETENTION_FIELDS,
} from "./policy-fields.ts";

interface PolicyReviewProps {
  readonly subject: string;
  readonly action: string;
  readonly draft: PolicyDraft;
  /** The values in force before the change. */
  readonly now: PolicyText;
  readonly outcome: PolicyOutcome;
  readonly namespace: string;
  readonly act: (applyToExisting: boolean) => Promise<unknown>;
  readonly close: () => void;
}

/** Asks before a policy is saved: what is set, and what is in force then, as the server answered. */
export function PolicyReview(props: PolicyReviewProps) {
  const { subject, action, draft, now, outcome, namespace, act, close } = props;
  const [chosen, setChosen] = useState<boolean>();
  const after = outcome.inForce;
  const changed = POLICY_DRAFTS.changed(draft);
  const effect = changedInForce(now, after);
  const isRetention = effect.some((field) => RETENTION_FIELDS.has(field));
  const isShorter = msOf(after) < msOf(now);
  // A longer retention is wanted for the stored records, too; a shorter one forgets some of them.
  const toExisting = isRetention && (chosen ?? msOf(after) > msOf(now));
  return (
    <ConfirmDialog
      title={`${action} the policy of ${subject}?`}
      action={action}
      {...(isShorter && { typed: namespace || "shorter", look: "danger" })}
      act={() => act(toExisting)}
      close={close}
    >
      <MisspeltNote name={namespace} />
      {changed.length > 0 && (
        <ul>
          {changed.map((field) => (
            <li key={field}>
              {POLICY_FIELDS[field].label}: {fieldWords(field, draft.saved.own[field])} becomes{" "}
              <strong>
                {fieldWords(field, canonicalText(POLICY_FIELDS[field].kind, draft.typed[field]))}
              </strong>
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
            ["Field", (field) => POLICY_FIELDS[field].label],
            ["Now", (field) => inForceWords(field, now[field])],
            ["Then", (field) => inForceWords(field, after[field])],
          ]}
          rows={effect}
          rowKey={(field) => field}
        />
      )}
      {now.lateKeys !== after.lateKeys && <LateClaims namespace={namespace} choice={after.lateKeys} />}
      {isRetention && (
        <p>
          <label>
            <input
              type="checkbox"
              checked={toExisting}
              onChange={({ target }) => setChosen(target.checked)}
            />{" "}
            {describeEffect(outcome.effect)}
          </label>
        </p>
      )}
    </ConfirmDialog>
  );
}

function msOf({ keyRetention }: PolicyText): number {
  return parseDuration(keyRetention) ?? 0;
}

/** Returns what a change does to stored records, such as "Also for the 12 records stored now (3 of them forgotten at once)". */
function describeEffect(effect: RetentionEffect | undefined): string {
  const { recordsChanged = 0n, truncated = false } = effect ?? {};
  const records = formatNoun(recordsChanged, "record", "records");
  return `Also for the ${truncated ? "at least " : ""}${records} stored now (${forgottenWords(effect)})`;
}
