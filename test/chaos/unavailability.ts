import { isDefinite, type Operation } from "../history/operation.ts";
import type { Injection } from "./injector.ts";

/** After a fault has healed, the service has so long to show that it has. */
const GRACE_MS = 5000;

/**
 * The longest time, by kind of fault, in which nobody was told anything while it lasted or soon after, in milliseconds.
 * Where faults overlap, it counts for both. After `loadEndedAtMs`, nobody asks.
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
