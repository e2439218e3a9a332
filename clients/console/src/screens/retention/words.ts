import type { Evidence } from "@onceward/words/retention-advice";
import type { Verdict } from "@onceward/words/retention-verdict";
import { VERDICT_NAMES } from "@onceward/words/verdict-words";
import { formatEstimate } from "../../format/quantity.ts";
import type { Mark, StateTone } from "../../parts/state-mark.tsx";

const TONES: Readonly<Record<Verdict["kind"], StateTone>> = {
  "too short": "attention",
  enough: "good",
  "longer than needed": "good",
  "none seen": "good",
  unproven: "quiet",
  "no claims": "quiet",
};

/** Returns the verdict in two words, and how to take it. */
export function nameVerdict({ kind }: Verdict): Mark {
  return { tone: TONES[kind], word: VERDICT_NAMES[kind] };
}

/** No one counts parts of many duplicates. */
function wholeFrom10(estimate: number): number {
  return estimate < 10 ? estimate : Math.round(estimate);
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
