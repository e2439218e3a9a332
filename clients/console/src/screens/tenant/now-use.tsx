import type { TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { formatCount, formatEstimate } from "../../format/quantity.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import common from "../../styles/common.module.css";
import { refusalWords } from "../home/refusals.ts";

interface UsageProps {
  readonly usage: TenantUsage;
}

/** The claims of the last minute, answered or refused, beside the limit. */
export function NowRate({ usage: { now, quotas } }: UsageProps) {
  const limit = quotas?.operationsPerSecond;
  return (
    <>
      {formatEstimate(now?.claimsPerSecond ?? 0)} a second
      {limit !== undefined && <div className={common.quiet}>limit {formatCount(limit)}</div>}
    </>
  );
}

/** What quotas refused in the last minute, by reason, and since the last full hour. */
export function Refused({ usage }: UsageProps) {
  const { now, recentRefused, recentWouldBeRefused } = usage;
  const words = now === undefined ? [] : refusalWords(now);
  const recent = recentRefused + recentWouldBeRefused;
  return (
    <>
      {words.length > 0 && <StateMark tone="bad">{`${words.join(", ")} in the last minute`}</StateMark>}
      {words.length > 0 && <br />}
      {recent === 0n ? (
        "–"
      ) : (
        <>
          {formatCount(recent)}
          {recentRefused === 0n && " counted, and answered"} <Since usage={usage} />
        </>
      )}
    </>
  );
}

/** The begin of the hours that a tenant's recent counts are of. */
export function Since({ usage: { recentSince } }: UsageProps) {
  return (
    <span className={common.quiet}>
      since <Time at={recentSince} form="absolute" />
    </span>
  );
}
