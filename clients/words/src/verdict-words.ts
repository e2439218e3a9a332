import { formatDurationMs } from "./durations.ts";
import { type Advice, type Evidence, evidenceInForce, type Verdict } from "./retention-advice.ts";
import { formatEstimate, formatNoun, formatShare } from "./words.ts";

/** The verdicts in two words. */
export const VERDICT_NAMES: Readonly<Record<Verdict, string>> = {
  "too short": "Too short",
  enough: "Long enough",
  "longer than needed": "Longer than needed",
  "none late": "None late",
  unproven: "Too early to say",
  "no claims": "No claims yet",
  "all refused": "All refused",
};

/** Returns what to do about a verdict, in a sentence or two. */
export function describeVerdict(advice: Advice): string {
  const { verdict, advised } = advice;
  const seen = evidenceInForce(advice);
  switch (verdict) {
    case "too short":
      return tooShort(advice, seen);
    case "enough":
      return `At most ${formatEstimate(advice.target)} in a million claims is a later duplicate.`;
    case "longer than needed":
      return `${advised && formatDurationMs(advised.retentionMs)} would be long enough, and keep fewer records.`;
    case "none late": {
      if (seen?.kind !== "late") return "No duplicate came later.";
      const none = `No duplicate came later in ${formatDays(seen.daysObserved)}.`;
      const oneIn = Math.floor(MILLION / seen.maxPerMillion);
      return oneIn < 2
        ? none
        : `${none} At this volume, at most 1 claim in ${formatEstimate(oneIn)} is late.`;
    }
    case "unproven":
      return seen?.kind === "missing" && seen.days > 0
        ? `${formatNoun(seen.days, "more day of traffic shows", "more days of traffic show")} whether it is long enough.`
        : "There was too little traffic to say whether it is long enough.";
    case "no claims":
      return "Advice begins with the first claims.";
    case "all refused":
      return "No claim was granted in the last 24h: all were refused.";
    default:
      return verdict satisfies never;
  }
}

function tooShort({ advised, lateness }: Advice, seen: Evidence | undefined): string {
  const perMonth = seen?.kind === "late" ? seen.perMonth : 0;
  const late = `About ${formatEstimate(Math.max(1, Math.round(perMonth)))} duplicates a month come later, and take effect a second time.`;
  if (advised === undefined)
    return `${late} No longer retention was observed that would have caught all of them.`;
  const { evidence, retentionMs } = advised;
  const longer = formatDurationMs(retentionMs);
  if (evidence.kind === "missing") {
    const isWhole = lateness.every(({ upToMs }) => upToMs <= retentionMs);
    return isWhole
      ? `${late} ${longer} catches all that were seen, and shows whether others come later.`
      : `${late} ${longer} catches more of them, and shows how late the others come.`;
  }
  const caught =
    evidence.perMonth === 0
      ? "all of them"
      : `about ${formatShare(1 - evidence.perMonth / perMonth)} of them`;
  return `${late} ${longer} would have caught ${caught} (${formatDays(evidence.daysObserved)} observed).`;
}

/** Returns an estimate with its interval, such as "950 (475 – 950)"; without the interval where it is exact. */
export function formatLate(evidence: Evidence | undefined): string {
  if (evidence === undefined || evidence.kind === "missing") return "not known";
  const { perMonth, low, high } = evidence;
  const estimate = formatRounded(perMonth);
  return low === high ? estimate : `${estimate} (${formatRounded(low)} – ${formatRounded(high)})`;
}

/** No one counts parts of many duplicates. */
function formatRounded(estimate: number): string {
  return formatEstimate(estimate < 10 ? estimate : Math.round(estimate));
}

const MILLION = 1_000_000;

function formatDays(days: number): string {
  return formatNoun(Math.floor(days), "day", "days");
}
