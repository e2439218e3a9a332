import type { GetKeyHistoryResponse } from "@onceward/client/proto";
import { formatCount, formatNoun } from "./words.ts";

/** What became of calls on a key that did not get its claim, in words of the page. */
export interface KeyHistory {
  /** One sentence with how often the key was repeated; undefined: nothing is kept of it. */
  readonly answer: string | undefined;
  /** How many calls got which answer, those that are not 0. */
  readonly parts: readonly string[];
}

/** What is said of a key without duplicates and refusals. */
export const NO_HISTORY = "No duplicates and no refusals yet. New ones appear within seconds.";

/** Returns what is kept of a key's duplicates and refusals. The counts are lower bounds. */
export function keyHistoryOf(history: GetKeyHistoryResponse): KeyHistory {
  const { replayed, inProgress, ambiguous, mismatched, tooOld, overQuota, superseded, unreadable } = history;
  const duplicates = replayed + inProgress + ambiguous;
  const refused = mismatched + tooOld + overQuota + superseded + unreadable;
  if (duplicates + refused === 0n) return { answer: undefined, parts: [] };
  const counts = [
    [replayed, "got the result"],
    [inProgress, "came while another caller held the key"],
    [ambiguous, "came while the outcome was unknown"],
    [mismatched, "refused: a different request with this key"],
    [tooOld, "refused: too old"],
    [overQuota, "refused: beyond a limit of the tenant"],
    [superseded, "refused: from a worker that had lost the key"],
    [unreadable, "refused: the record cannot be decrypted"],
  ] as const;
  const sums = [
    ...(duplicates > 0n ? [formatNoun(duplicates, "duplicate", "duplicates")] : []),
    ...(refused > 0n ? [formatNoun(refused, "refusal", "refusals")] : []),
  ];
  return {
    answer: `At least ${sums.join(" and ")}.`,
    parts: counts.flatMap(([count, words]) => (count > 0n ? [`${formatCount(count)} ${words}`] : [])),
  };
}
