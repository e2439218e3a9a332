import { formatShare } from "../../format/quantity.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import styles from "./quota-bar.module.css";
import { amountWords, FULLNESS_MARKS, fullness, type MeasuredQuota, type QuotaUse } from "./quota-use.ts";

/** The use of a quota in words, with a bar if it is limited. The words say everything that the bar shows. */
export function QuotaBar({ quota, use }: { readonly quota: MeasuredQuota; readonly use: QuotaUse }) {
  const { used, limit } = use;
  const how = fullness(use, quota === "operationsPerSecond");
  if (used === undefined || limit === undefined)
    return <span className={styles.quiet}>{used === undefined ? "–" : amountWords(quota, used)}</span>;
  const share = limit === 0 ? 1 : used / limit;
  return (
    <div className={styles.use}>
      <span>
        {amountWords(quota, used)} of {amountWords(quota, limit)}, {formatShare(share)}
      </span>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" data-fullness={how}>
        <rect className={styles.track} width="100" height="4" />
        <rect className={styles.filled} width={Math.min(share, 1) * 100} height="4" />
      </svg>
      {(how === "near" || how === "beyond") && (
        <div>
          <StateMark tone={FULLNESS_MARKS[how].tone}>{FULLNESS_MARKS[how].word}</StateMark>
        </div>
      )}
    </div>
  );
}
