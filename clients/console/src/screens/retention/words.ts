import { formatDuration } from "../../format/duration.ts";
import { formatEstimate, formatNoun, formatShare } from "../../format/quantity.ts";
import type { Mark } from "../../parts/state-mark.tsx";
import type { Evidence } from "./candidates.ts";
import { lateOf, type Verdict } from "./verdict.ts";

/** Returns the verdict in two words, and how to take it. */
export function nameVerdict(verdict: Verdict): Mark {
  switch (verdict.kind) {
    case "too short":
      return { tone: "attention", word: "Too short" };
    case "enough":
      return { tone: "good", word: "Long enough" };
    case "longer than needed":
      return { tone: "good", word: "Longer than needed" };
    case "none seen":
      return { tone: "good", word: "None late" };
    case "unproven":
      return { tone: "quiet", word: "Too early to say" };
    case "no claims":
      return { tone: "quiet", word: "No claims yet" };
    default:
      return verdict satisfies never;
  }
}

/** Returns what to do about a verdict, in a sentence. */
export function describeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case "too short": {
      const { perMonth, better } = verdict;
      const late = `About ${formatEstimate(Math.max(1, Math.round(perMonth)))} duplicates a month come later, and take effect a second time.`;
      if (better === undefined)
        return `${late} No longer retention was observed that would have caught all of them.`;
      if (better.evidence.kind === "missing")
        return `${late} How late is not known yet: ${formatDuration(better.retentionMs)} catches more of them, and shows it.`;
      const days = better.evidence.kind === "late" ? better.evidence.daysObserved : 0;
      const share = 1 - lateOf(better) / perMonth;
      const caught = share === 1 ? "all of them" : `about ${formatShare(share)} of them`;
      return `${late} ${formatDuration(better.retentionMs)} would have caught ${caught} (${formatDays(days)} observed).`;
    }
    case "enough":
      return "A shorter retention would not be.";
    case "longer than needed":
      return `${formatDuration(verdict.enoughMs)} would be long enough, and keep fewer records.`;
    case "none seen": {
      const { daysObserved, maxPerMillion } = verdict;
      const none = `No duplicate came later in ${formatDays(daysObserved)}.`;
      const oneIn = Math.floor(MILLION / maxPerMillion);
      return oneIn < 2
        ? none
        : `${none} By this traffic, fewer than 1 in ${formatEstimate(oneIn)} claims has one.`;
    }
    case "unproven":
      return verdict.days > 0
        ? `${formatNoun(verdict.days, "more day of traffic shows", "more days of traffic show")} whether it is long enough.`
        : "There was too little traffic to say whether it is long enough.";
    case "no claims":
      return "Advice begins with the first claims.";
    default:
      return verdict satisfies never;
  }
}

const MILLION = 1_000_000;

/** Nobody counts parts of many duplicates. */
function wholeFrom10(estimate: number): number {
  return estimate < 10 ? estimate : Math.round(estimate);
}

function formatDays(days: number): string {
  return formatNoun(Math.floor(days), "day", "days");
}

/** Returns what data is missing, as the beginning of a sentence. */
export function describeMissing(days: number, claims: bigint): string {
  const parts = [
    ...(days > 0 ? [formatNoun(days, "more day", "more days")] : []),
    ...(claims > 0n ? [formatNoun(claims, "more claim", "more claims")] : []),
  ];
  return parts.length === 0 ? "More data is needed" : `It takes ${parts.join(" and ")}`;
}

/** Returns an estimate with its interval, such as "950 (475 – 950)"; without the interval where it is exact. */
export function formatLate(evidence: Evidence | undefined): string {
  if (evidence === undefined || evidence.kind === "missing") return "not known";
  const { perMonth, low, high } = evidence;
  const estimate = formatEstimate(wholeFrom10(perMonth));
  return low === high
    ? estimate
    : `${estimate} (${formatEstimate(wholeFrom10(low))} – ${formatEstimate(wholeFrom10(high))})`;
}
