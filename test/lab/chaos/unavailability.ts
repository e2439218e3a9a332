import { isDefinite, type Operation } from "../history/operation.ts";
import type { Injection } from "./injector.ts";

/** A gap between answers counts for a fault until this long after it healed. */
const GRACE_MS = 5000;

/**
 * Returns the longest time without any answer, by kind of fault, while it lasted or soon after, in
 * milliseconds. If faults overlap, a gap counts for both. After `loadEndedAtMs` no calls are made.
 */
export function longestUnavailableMs(
  operations: readonly Operation[],
  injections: readonly Injection[],
  loadEndedAtMs: number,
): Record<string, number> {
  const answeredAtMs = operations
    .filter(isDefinite)
    .map(({ returnedAtMs }) => returnedAtMs)
    .sort((a, b) => a - b);
  const longest: Record<string, number> = {};
  for (const { fault, startedAtMs, healedAtMs } of injections) {
    const untilMs = Math.min(healedAtMs + GRACE_MS, loadEndedAtMs);
    const answers = answeredAtMs.filter((atMs) => atMs > startedAtMs && atMs < untilMs);
    const gapsMs = [...answers, untilMs].map((atMs, index) => atMs - (answers[index - 1] ?? startedAtMs));
    longest[fault] = Math.round(Math.max(longest[fault] ?? 0, ...gapsMs));
  }
  return longest;
}
