import { OperatorService, type TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { FormFrame } from "../../form/form-frame.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import styles from "../../styles/screens.module.css";
import { LIMIT_FIELDS, type LimitField, limitWords } from "./limit-fields.ts";
import { LimitReview } from "./limit-review.tsx";
import { useLimitForm } from "./use-limit-form.ts";

interface LimitFormProps {
  readonly tenant: Tenant;
  /** Undefined: it could not be read, and the review does not compare. */
  readonly usage: TenantUsage | undefined;
}

/** A form over a tenant's quotas and bounds. Before they are saved, it says what they do to the present use. */
export function LimitForm({ tenant, usage }: LimitFormProps) {
  const refresh = useRefresh();
  const notify = useNotice();
  const form = useLimitForm(tenant);
  const { draft, changed, problems, outcome: after } = form;

  async function save(): Promise<void> {
    if ((await form.save({ validateOnly: false })) === undefined) return;
    const { getTenant, listTenantUsage, listAuditEvents } = OperatorService.method;
    await refresh(getTenant, listTenantUsage, listAuditEvents);
    notify(`Saved the limits of ${tenant.name}. Every replica follows within 10 s.`);
  }

  const fields = (group: LimitField["group"]) => (
    <div className={styles.limits}>
      {LIMIT_FIELDS.filter((field) => field.group === group).map((field) => (
        <div key={field.path} data-changed={changed.includes(field.path)}>
          <LimitInput
            field={field}
            text={draft.typed[field.path] ?? ""}
            problem={problems[field.path]}
            type={(text) => form.type(field.path, text)}
          />
        </div>
      ))}
    </div>
  );
  return (
    <>
      <FormFrame
        form={form}
        changedEvent="The limits were changed while you edited them."
        labelOf={(path) => LIMIT_FIELDS.find((field) => field.path === path)?.label ?? path}
        wordsOf={limitWords}
        action="Preview the limits"
      >
        <h2>Quotas</h2>
        {fields("quotas")}
        <h2>Bounds of the tenant's policies</h2>
        {fields("policyBounds")}
      </FormFrame>
      {after !== undefined && (
        <LimitReview
          tenant={tenant}
          usage={usage}
          texts={draft.typed}
          changed={changed}
          after={after}
          act={save}
          close={form.closeReview}
        />
      )}
    </>
  );
}

interface LimitInputProps {
  readonly field: LimitField;
  readonly text: string;
  readonly problem: string | undefined;
  readonly type: (text: string) => void;
}

function LimitInput({ field: { label, help, kind }, text, problem, type }: LimitInputProps) {
  if (kind !== "flag") {
    return (
      <TextField
        label={label}
        help={help}
        problem={problem}
        placeholder="not set"
        value={text}
        maxLength={32}
        onChange={(event) => type(event.target.value)}
      />
    );
  }
  return (
    <SelectField
      label={label}
      help={help}
      problem={problem}
      value={text}
      onChange={(event) => type(event.target.value)}
    >
      <option value="">Enforce</option>
      <option value="true">Count only</option>
    </SelectField>
  );
}
