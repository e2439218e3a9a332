import { lateOf, type Verdict } from "./retention-verdict.ts";
import { formatDurationMs } from "./durations.ts";
import { formatEstimate, formatNoun, formatShare } from "./words.ts";

/** The verdicts in two words. */
export const VERDICT_NAMES: Readonly<Record<Verdict["kind"], string>> = {
  "too short": "Too short",
  enough: "Long enough",
  "longer than needed": "Longer than needed",
  "none seen": "None late",
  unproven: "Too early to say",
  "no claims": "No claims yet",
};

/** Returns what to do about a verdict, in a sentence. */
export function describeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case "too short": {
      const { perMonth, better } = verdict;
      const late = `About ${formatEstimate(Math.max(1, Math.round(perMonth)))} duplicates a month come later, and take effect a second time.`;
      if (better === undefined)
        return `${late} No longer retention was observed that would have caught all of them.`;
      if (better.evidence.kind === "missing")
        return `${late} How late is not known yet: ${formatDurationMs(better.retentionMs)} catches more of them, and shows it.`;
      const days = better.evidence.kind === "late" ? better.evidence.daysObserved : 0;
      const share = 1 - lateOf(better) / perMonth;
      const caught = share === 1 ? "all of them" : `about ${formatShare(share)} of them`;
      return `${late} ${formatDurationMs(better.retentionMs)} would have caught ${caught} (${formatDays(days)} observed).`;
    }
    case "enough":
      return "A shorter retention would not be.";
    case "longer than needed":
      return `${formatDurationMs(verdict.enoughMs)} would be long enough, and keep fewer records.`;
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

function formatDays(days: number): string {
  return formatNoun(Math.floor(days), "day", "days");
}
