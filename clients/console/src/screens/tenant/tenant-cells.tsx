import type { TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { Tenant_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import {
  amountWords,
  type Fullness,
  type MeasuredQuota,
  type QuotaUse,
  shareWords,
} from "@onceward/words/quota-use";
import { refusalWords } from "@onceward/words/refusals";
import { formatCount, formatRate } from "../../format/quantity.ts";
import { type Mark, StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import styles from "../../styles/charts.module.css";
import common from "../../styles/common.module.css";

/** How a fullness is shown. */
export const FULLNESS_MARKS: Readonly<Record<Fullness, Mark>> = {
  "not counted": { tone: "quiet", word: "Not counted" },
  "not limited": { tone: "quiet", word: "Not limited" },
  within: { tone: "good", word: "Within" },
  near: { tone: "attention", word: "Nearly used up" },
  beyond: { tone: "bad", word: "Used up" },
};

/** The use of a quota in words, with a bar if it is limited. The words say everything that the bar shows. */
export function QuotaBar({ quota, use }: { readonly quota: MeasuredQuota; readonly use: QuotaUse }) {
  const { used, limit, fullness } = use;
  const amount = used === undefined ? "Not counted: no limit" : amountWords(quota, used);
  if (used === undefined || limit === undefined) return <span className={common.quiet}>{amount}</span>;
  return (
    <div className={styles.quota}>
      <span>
        {amount} of {amountWords(quota, limit)}, {shareWords(used, limit)}
      </span>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect className={styles.track} width="100" height="4" />
        <rect
          className={styles.bar}
          data-tone={FULLNESS_MARKS[fullness].tone}
          width={used >= limit ? 100 : (used / limit) * 100}
          height="4"
        />
      </svg>
      {(fullness === "near" || fullness === "beyond") && (
        <div>
          <StateMark {...FULLNESS_MARKS[fullness]} />
        </div>
      )}
    </div>
  );
}

/** The claims of the last minute, and what a quota refused, beside the limit. */
export function NowRate({ usage: { now, quotas } }: { readonly usage: TenantUsage }) {
  const limit = quotas?.operationsPerSecond;
  return (
    <>
      {formatRate(now?.claimsPerSecond ?? 0)} a second
      {now !== undefined && now.refusedPerSecond > 0 && <div>{formatRate(now.refusedPerSecond)} refused</div>}
      {limit !== undefined && <div className={common.quiet}>limit {formatCount(limit)}</div>}
    </>
  );
}

/** What was refused in the last minute, by cause, and by quotas since the last full hour; of none, that is said if `isDated`. */
export function Refused({ usage, isDated }: { readonly usage: TenantUsage; readonly isDated?: true }) {
  const { now, recentRefused, recentWouldBeRefused, recentSince } = usage;
  const words = now === undefined ? [] : refusalWords(now);
  const recent = recentRefused + recentWouldBeRefused;
  return (
    <>
      {words.length > 0 && <StateMark tone="bad" word={`${words.join(", ")} in the last minute`} />}
      {words.length > 0 && <br />}
      {recent === 0n && !isDated ? (
        words.length === 0 && "0"
      ) : (
        <>
          {formatCount(recent)}
          {recentRefused === 0n && recent > 0n && " counted, and answered"}{" "}
          <span className={common.quiet}>
            since <Time at={recentSince} form="absolute" />
          </span>
        </>
      )}
    </>
  );
}

const MARKS: Readonly<Record<Tenant_State, Mark>> = {
  [Tenant_State.UNSPECIFIED]: { tone: "quiet", word: "Unknown" },
  [Tenant_State.ACTIVE]: { tone: "good", word: "Active" },
  [Tenant_State.SUSPENDED]: { tone: "attention", word: "Suspended" },
  [Tenant_State.MOVING]: { tone: "attention", word: "Moving" },
  [Tenant_State.DELETING]: { tone: "bad", word: "Being deleted" },
};

/** A tenant's state by shape and word. */
export function TenantStateMark({ state }: { readonly state: Tenant_State }) {
  return <StateMark {...(MARKS[state] ?? MARKS[Tenant_State.UNSPECIFIED])} />;
}
