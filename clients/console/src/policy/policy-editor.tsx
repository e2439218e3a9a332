import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { type Policy, PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { UpdateTenantResponse } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useId } from "react";
import { FormFrame } from "../form/form-frame.tsx";
import { TypedInput } from "../form/typed-input.tsx";
import { type Form, useForm } from "../form/use-form.ts";
import { useNotice } from "../parts/notice.tsx";
import common from "../styles/common.module.css";
import styles from "../styles/policy.module.css";
import {
  FIELD_NAMES,
  fieldOfPath,
  fieldWords,
  inForceWords,
  POLICY_DRAFTS,
  POLICY_FIELDS,
  type PolicyField,
  type PolicyOutcome,
  type PolicyText,
  policyText,
  readDraft,
  type SavedPolicy,
} from "./policy-fields.ts";
import { PolicyReview } from "./policy-review.tsx";

/** How a change of a policy is sent. */
interface How {
  readonly validateOnly: boolean;
  /** Change the retention of stored records, too. */
  readonly applyToExisting: boolean;
}

/** A change of a policy, for the RPC of its resource. */
interface PolicyChange extends How {
  readonly policy: Policy;
  readonly etag: string;
  readonly updateMask: { readonly paths: string[] };
}

/** The answer of the RPC. */
interface PolicyAnswer extends Pick<UpdateTenantResponse, "effect" | "job"> {
  /** The resource after the change. */
  readonly after: Pick<Tenant, "effectivePolicy"> | undefined;
}

/** With `validate_only` the server counts stored records until the call's time ends, and answers "at least". */
const REVIEW_TIMEOUT_MS = 4_000;

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
  readonly send: (change: PolicyChange, options: CallOptions) => Promise<PolicyAnswer>;
  /** Reads the policy once more. */
  readonly reload: () => Promise<SavedPolicy>;
  /** Called after a change was saved. */
  readonly onSaved?: (inForce: PolicyText) => void;
}

/** The state of a form over a policy, for its editor and for what is shown beside it. */
export type PolicyForm = Form<PolicyField, How, PolicyOutcome>;

/** A form over the fields of a policy: own values beside the inherited ones. */
export function PolicyEditor({ form, ...props }: PolicyEditorProps & { readonly form: PolicyForm }) {
  const { subject, saved, inForce, tenantOwn, action, mayBeUnchanged = false, reload, onSaved } = props;
  const { draft, changed, problems, outcome } = form;
  const notify = useNotice();

  async function save(applyToExisting: boolean): Promise<void> {
    const result = await form.save({ validateOnly: false, applyToExisting });
    if (result === undefined) return;
    await reload();
    onSaved?.(result.inForce);
    const job = result.jobId === undefined ? "" : ` Job ${result.jobId} changes the stored records.`;
    notify(`Saved the policy of ${subject}. Every replica follows within 10 s.${job}`);
  }

  return (
    <>
      <FormFrame
        form={form}
        changedEvent="This policy was changed while you edited it."
        wordsOf={fieldWords}
        action={action}
        mayBeUnchanged={mayBeUnchanged}
      >
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
            type={(text) => form.type(field, text)}
          />
        ))}
      </FormFrame>
      {outcome !== undefined && (
        <PolicyReview
          subject={subject}
          action={action}
          draft={draft}
          now={inForce}
          outcome={outcome}
          namespace={props.namespace}
          act={save}
          close={form.closeReview}
        />
      )}
    </>
  );
}

/** Holds the form over a policy. */
export function usePolicyForm({ subject, saved, send, reload }: PolicyEditorProps): PolicyForm {
  return useForm<PolicyField, How, PolicyOutcome>({
    ...{ name: `policy of ${subject}`, drafts: POLICY_DRAFTS, saved, fieldOfPath, reload },
    problemsOf: (draft) => readDraft(draft).problems,
    preview: { validateOnly: true, applyToExisting: false },
    async send(draft, how) {
      const { policy, paths } = readDraft(draft);
      const change = { policy: create(PolicySchema, policy), etag: draft.saved.etag, updateMask: { paths } };
      const options = how.validateOnly ? { timeoutMs: REVIEW_TIMEOUT_MS } : {};
      const { after, effect, job } = await send({ ...change, ...how }, options);
      return { inForce: policyText(after?.effectivePolicy), effect, jobId: job?.id };
    },
  });
}

interface PolicyRowProps {
  readonly field: PolicyField;
  /** As typed. */
  readonly text: string;
  readonly savedText: string;
  readonly isChanged: boolean;
  readonly inForce: string;
  readonly tenantOwn: PolicyText | undefined;
  readonly problem: string | undefined;
  readonly type: (text: string) => void;
}

/** A field of a policy: its own value to type, the inherited one, and the one in force. */
function PolicyRow({ field, text, savedText, isChanged, inForce, tenantOwn, problem, type }: PolicyRowProps) {
  const { label, help, kind } = POLICY_FIELDS[field];
  const id = useId();
  return (
    <div className={styles.row} data-changed={isChanged}>
      <div>
        <label htmlFor={id}>{label}</label>
        <div id={`${id}-help`} className={common.note}>
          {help}
        </div>
      </div>
      <div className={styles.own}>
        <TypedInput
          {...{ id, kind, value: text, type, unset: "inherited" }}
          ref={window.location.hash === `#${field}` ? focus : undefined}
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-help ${id}-problem`}
        />
        <div className={common.row}>
          {text !== "" && (
            <button type="button" data-look="link" onClick={() => type("")}>
              Inherit<span className={common.hidden}> the {label.toLowerCase()}</span>
            </button>
          )}
          {isChanged && (
            <button type="button" data-look="link" onClick={() => type(savedText)}>
              Undo<span className={common.hidden}> the {label.toLowerCase()}</span>
            </button>
          )}
        </div>
        <div id={`${id}-problem`} className={common.note} data-problem="true">
          {problem}
        </div>
      </div>
      <div className={styles.value}>
        <span className={styles.narrow}>Inherited: </span>
        {inheritedWords(field, tenantOwn)}
      </div>
      <div className={styles.value}>
        <span className={styles.narrow}>Effective: </span>
        {inForceWords(field, inForce)}
      </div>
    </div>
  );
}

/** The field that the address names is shown, and ready to type in. */
function focus(field: HTMLElement | null): void {
  field?.focus();
}

function inheritedWords(field: PolicyField, tenantOwn: PolicyText | undefined) {
  const ofTenant = tenantOwn?.[field] ?? "";
  const text = ofTenant || POLICY_FIELDS[field].default;
  return (
    <>
      {inForceWords(field, text)}{" "}
      <span className={common.quiet}>{ofTenant !== "" ? "from the tenant" : text !== "" && "default"}</span>
    </>
  );
}
