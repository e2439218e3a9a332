import type { RetentionEffect } from "@onceward/client/proto";
import { formatCount, formatNoun } from "./words.ts";

/** Returns what a change of retention forgets, such as "12 of them forgotten at once, of which 3 wait for a decision". */
export function forgottenWords(effect: RetentionEffect | undefined): string {
  const { recordsForgotten = 0n, ambiguousForgotten = 0n, truncated = false } = effect ?? {};
  const forgotten = `${truncated ? "at least " : ""}${formatCount(recordsForgotten)} of them forgotten at once`;
  return ambiguousForgotten === 0n
    ? forgotten
    : `${forgotten}, of which ${formatNoun(ambiguousForgotten, "waits", "wait")} for a decision`;
}
