import type { TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FailureText } from "../../parts/list-states.tsx";
import { SavedByOthers, type SavedField } from "../../parts/saved-by-others.tsx";
import { LIMIT_FIELDS, type LimitField, type LimitSavedByOther } from "./limit-fields.ts";
import { LimitReview } from "./limit-review.tsx";
import styles from "./tenant.module.css";
import { useLimitForm } from "./use-limit-form.ts";

interface LimitFormProps {
  readonly tenant: Tenant;
  /** Undefined: it could not be read, and the review does not compare. */
  readonly usage: TenantUsage | undefined;
}

/** A form over a tenant's quotas and bounds. Before they are saved, it says what they do to the present use. */
export function LimitForm({ tenant, usage }: LimitFormProps) {
  const form = useLimitForm(tenant);
  const { texts, changed, problems, failure, savedByOthers, isWaiting, after } = form;
  const fields = (group: LimitField["group"]) => (
    <div className={styles.fields}>
      {LIMIT_FIELDS.filter((field) => field.group === group).map((field) => (
        <div key={field.path} data-changed={changed.includes(field.path)}>
          <LimitInput
            field={field}
            text={texts[field.path] ?? ""}
            problem={problems[field.path]}
            type={(text) => form.type(field.path, text)}
          />
        </div>
      ))}
    </div>
  );
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void form.review();
        }}
      >
        <h2>Quotas</h2>
        <SavedByOthers
          event="The limits were changed while you edited them."
          fields={savedByOthers.map(inWords)}
          hide={form.hideSavedByOthers}
        />
        {fields("quotas")}
        <h2>Bounds of the tenant's policies</h2>
        {fields("policyBounds")}
        <div role="alert" className={styles.failure}>
          {failure !== undefined && <FailureText failure={failure} />}
        </div>
        <div className={styles.buttons}>
          <button type="submit" disabled={isWaiting || changed.length === 0}>
            Preview the limits
          </button>
          <button type="button" disabled={changed.length === 0} onClick={form.undo}>
            Undo all
          </button>
          <span className={styles.quiet} role="status">
            {changed.length > 0 && `${changed.length} changed`}
          </span>
        </div>
      </form>
      {after !== undefined && (
        <LimitReview
          tenant={tenant}
          usage={usage}
          texts={texts}
          changed={changed}
          after={after}
          act={form.save}
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
      <option value="">Enforce: refuse calls beyond it</option>
      <option value="true">Count only: refuse nothing</option>
    </SelectField>
  );
}

function inWords({ path, before, now, typed }: LimitSavedByOther): SavedField {
  const words = (text: string) => (text === "" ? "not set" : text);
  const name = LIMIT_FIELDS.find((field) => field.path === path)?.label ?? path;
  return {
    name,
    before: words(before),
    now: words(now),
    typed: typed === undefined ? undefined : words(typed),
  };
}
