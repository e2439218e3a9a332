import type { Advice, Verdict } from "@onceward/words/retention-advice";
import { VERDICT_NAMES } from "@onceward/words/verdict-words";
import type { Mark, StateTone } from "../../parts/state-mark.tsx";

const TONES: Readonly<Record<Verdict, StateTone>> = {
  "too short": "attention",
  enough: "good",
  "longer than needed": "good",
  "none late": "good",
  unproven: "quiet",
  "no claims": "quiet",
  "all refused": "attention",
};

/** Returns the verdict in two words, and how to take it. */
export function nameVerdict({ verdict }: Advice): Mark {
  return { tone: TONES[verdict], word: VERDICT_NAMES[verdict] };
}
