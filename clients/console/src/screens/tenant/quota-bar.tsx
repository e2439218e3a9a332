import { StateMark } from "../../parts/state-mark.tsx";
import styles from "../../styles/charts.module.css";
import common from "../../styles/common.module.css";
import { amountWords, FULLNESS_MARKS, type MeasuredQuota, type QuotaUse, shareWords } from "./quota-use.ts";

/** The use of a quota in words, with a bar if it is limited. The words say everything that the bar shows. */
export function QuotaBar({ quota, use }: { readonly quota: MeasuredQuota; readonly use: QuotaUse }) {
  const { used, limit, fullness } = use;
  if (used === undefined || limit === undefined)
    return <span className={common.quiet}>{used === undefined ? "–" : amountWords(quota, used)}</span>;
  return (
    <div className={styles.quota}>
      <span>
        {amountWords(quota, used)} of {amountWords(quota, limit)}, {shareWords(used, limit)}
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
          <StateMark tone={FULLNESS_MARKS[fullness].tone}>{FULLNESS_MARKS[fullness].word}</StateMark>
        </div>
      )}
    </div>
  );
}
