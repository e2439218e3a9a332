import type { TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { beyondBounds, effectOfQuotas } from "./limit-effect.ts";
import { LIMIT_FIELDS, type LimitTexts, limitTexts, limitWords } from "./limit-fields.ts";
import { FULLNESS_MARKS, type MeasuredQuota } from "./quota-use.ts";

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

const QUOTA_LABELS: Readonly<Record<MeasuredQuota, string>> = {
  liveRecords: "Stored records",
  storedBytes: "Stored bytes",
  declaredNamespaces: "Declared namespaces",
  operationsPerSecond: "Claims, at their busiest",
};

/** Asks before limits are saved: what changes, and which of the present uses the new limits would refuse. */
export function LimitReview({ tenant, usage, texts, changed, after, act, close }: LimitReviewProps) {
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
            ["Quota", ({ quota }) => QUOTA_LABELS[quota]],
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
          rowKey={({ quota }) => quota}
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
