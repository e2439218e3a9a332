import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { OperatorService, type TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { PolicyBoundsSchema, QuotasSchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { beyondBounds, effectOfQuotas } from "@onceward/words/limit-effect";
import { FormFrame } from "../../form/form-frame.tsx";
import { TypedInput } from "../../form/typed-input.tsx";
import { useForm } from "../../form/use-form.ts";
import { asTitle } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Field } from "../../parts/field.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import styles from "../../styles/screens.module.css";
import {
  LIMIT_DRAFTS,
  LIMIT_FIELDS,
  type LimitField,
  type LimitTexts,
  limitTexts,
  limitWords,
  parseLimits,
} from "./limit-fields.ts";
import { FULLNESS_MARKS } from "./tenant-cells.tsx";

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
    await refresh(OperatorService);
    notify(`Saved the limits of ${tenant.name}. Every replica follows within 10 s.`);
  }

  const fields = (group: LimitField["group"]) => (
    <div className={styles.limits}>
      {LIMIT_FIELDS.filter((field) => field.group === group).map((field) => (
        <div key={field.path} data-changed={changed.includes(field.path)}>
          <Field label={field.label} help={field.help} problem={problems[field.path]}>
            {(shared) => (
              <TypedInput
                {...shared}
                {...{ kind: field.kind, unset: field.unset, value: draft.typed[field.path] ?? "" }}
                type={(text) => form.type(field.path, text)}
              />
            )}
          </Field>
        </div>
      ))}
    </div>
  );
  return (
    <>
      <FormFrame
        form={form}
        changedEvent="The limits were changed while you edited them."
        wordsOf={limitWords}
        action="Preview the limits"
      >
        <h2>Quotas</h2>
        {usage !== undefined && (usage.liveRecords ?? usage.storedBytes) === undefined && (
          <p>
            Records and bytes are counted once they are limited. Begin with a quota dry run: it refuses
            nothing.
          </p>
        )}
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

/** Holds the form of a tenant's limits. Its outcome is the tenant as it would be, or is. */
function useLimitForm(tenant: Tenant) {
  const client = createClient(OperatorService, useTransport());
  const { refetch } = useQuery(OperatorService.method.getTenant, { name: tenant.name }, { enabled: false });
  return useForm<string, { readonly validateOnly: boolean }, Tenant | undefined>({
    name: `limits of ${tenant.name}`,
    drafts: LIMIT_DRAFTS,
    saved: { etag: tenant.etag, own: limitTexts(tenant) },
    problemsOf: (draft) => parseLimits(draft.typed, LIMIT_DRAFTS.changed(draft)).problems,
    fieldOfPath: (path) => LIMIT_DRAFTS.fields[path] && path,
    preview: { validateOnly: true },
    async send(draft, { validateOnly }) {
      const paths = LIMIT_DRAFTS.changed(draft);
      const { policyBounds, quotas } = parseLimits(draft.typed, paths);
      const answer = await client.updateTenantLimits({
        ...{ name: tenant.name, etag: draft.saved.etag, validateOnly, updateMask: { paths: [...paths] } },
        policyBounds: create(PolicyBoundsSchema, policyBounds),
        quotas: create(QuotasSchema, quotas),
      });
      return answer.tenant;
    },
    async reload() {
      const { data } = await refetch();
      return { etag: data?.tenant?.etag ?? "" };
    },
  });
}

interface LimitReviewProps {
  readonly tenant: Tenant;
  readonly usage: TenantUsage | undefined;
  readonly texts: LimitTexts;
  readonly changed: readonly string[];
  /** The tenant as the server would save it. */
  readonly after: Tenant;
  readonly act: () => Promise<unknown>;
  readonly close: () => void;
}

/** Asks before limits are saved: what changes, and which of the present uses the new limits would refuse. */
function LimitReview({ tenant, usage, texts, changed, after, act, close }: LimitReviewProps) {
  const saved = limitTexts(tenant);
  const effects = usage === undefined ? [] : effectOfQuotas(usage, after.quotas ?? {});
  const refusing = effects.filter(({ fullness }) => fullness === "beyond").length;
  const stays = beyondBounds(tenant.policy, after.policyBounds);
  return (
    <ConfirmDialog
      title={`Set the limits of ${tenant.name}?`}
      action="Set the limits"
      look={refusing > 0 ? "danger" : "plain"}
      {...(refusing > 0 && { typed: tenant.name })}
      act={act}
      close={close}
    >
      <ul>
        {LIMIT_FIELDS.filter(({ path }) => changed.includes(path)).map(({ path, label }) => (
          <li key={path}>
            {label}: {limitWords(path, saved[path])} becomes <strong>{limitWords(path, texts[path])}</strong>
          </li>
        ))}
      </ul>
      {usage === undefined && (
        <p>The tenant's use could not be read: whether it is beyond the limits is not known.</p>
      )}
      {effects.length > 0 && (
        <DataTable
          caption={
            refusing > 0 ? "The present use is beyond the new limits" : "The present use and the new limits"
          }
          columns={[
            ["Quota", ({ label }) => asTitle(label)],
            ["Used", ({ used }) => used, "number"],
            ["New limit", ({ limit }) => limit, "number"],
            [
              "Effect",
              ({ fullness, consequence }) => (
                <>
                  <StateMark {...FULLNESS_MARKS[fullness]} />
                  <div>{consequence}</div>
                </>
              ),
            ],
          ]}
          rows={effects}
          rowKey={({ label }) => label}
        />
      )}
      {stays.length > 0 && (
        <>
          <p>
            Values of the tenant's policy beyond the new bounds stay in force until they are next updated:
          </p>
          <ul>
            {stays.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </>
      )}
    </ConfirmDialog>
  );
}
