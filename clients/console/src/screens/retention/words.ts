import { formatDuration } from "../../format/duration.ts";
import { formatEstimate, formatNoun } from "../../format/quantity.ts";
import type { StateTone } from "../../parts/state-mark.tsx";
import type { Evidence } from "./candidates.ts";
import type { Verdict } from "./verdict.ts";

/** Returns the verdict in two words, and how to take it. */
export function nameVerdict(verdict: Verdict): { readonly tone: StateTone; readonly word: string } {
  switch (verdict.kind) {
    case "too short":
      return { tone: "attention", word: "Too short" };
    case "enough":
      return { tone: "good", word: "Long enough" };
    case "longer than needed":
      return { tone: "good", word: "Longer than needed" };
    case "unproven":
      return { tone: "quiet", word: "Not proven yet" };
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
      const late = `About ${formatEstimate(perMonth)} duplicates a month come after their key was forgotten.`;
      if (better === undefined) return `${late} No longer retention was observed that has none.`;
      const days = better.evidence.kind === "late" ? Math.floor(better.evidence.daysObserved) : 0;
      const retention = formatDuration(better.retentionMs);
      return `${late} With ${retention} there was none in ${formatNoun(days, "day", "days")}.`;
    }
    case "enough":
      return "No shorter retention is long enough.";
    case "longer than needed":
      return `${formatDuration(verdict.enoughMs)} would be long enough.`;
    case "unproven":
      return `${describeMissing(verdict.days, verdict.claims)} to say that it is long enough.`;
    case "no claims":
      return "Advice begins with the first claims.";
    default:
      return verdict satisfies never;
  }
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
  const estimate = formatEstimate(perMonth);
  return low === high ? estimate : `${estimate} (${formatEstimate(low)} – ${formatEstimate(high)})`;
}
