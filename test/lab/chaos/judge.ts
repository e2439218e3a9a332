import { checkHistory, type Violation } from "../history/check.ts";
import { checkEffects, type Effects } from "../history/effects.ts";
import { type FinalRead, withFinalReads } from "../history/final-reads.ts";
import { checkLiveness } from "../history/liveness.ts";
import { type History, nameOf } from "../history/operation.ts";
import { shrink } from "../history/shrink.ts";
import { describeViolation } from "../history/timeline.ts";
import { checkErrors } from "./errors.ts";

/** Everything that was recorded in a run. */
export interface Evidence {
  readonly history: History;
  /** One for every key of the history. */
  readonly reads: readonly FinalRead[];
  readonly effects: Effects;
  /** When the last fault healed. */
  readonly healedAtMs: number;
}

/** The verdicts of all oracles. */
export interface Judgement {
  readonly histories: number;
  readonly timeouts: readonly string[];
  readonly violations: readonly Violation[];
  /** Keys that were claimed after all leases had ended. */
  readonly probedKeys: number;
}

/** Judges a run by every oracle. */
export function judge({ history, reads, effects, healedAtMs }: Evidence): Judgement {
  const complete = withFinalReads(history, reads);
  const verdict = checkHistory(complete);
  const liveness = checkLiveness(history, { healedAtMs });
  return {
    histories: verdict.keys,
    timeouts: verdict.timeouts.map(nameOf),
    violations: [
      ...verdict.violations,
      ...liveness.violations,
      ...checkEffects(history, effects),
      ...checkErrors(history),
    ],
    probedKeys: liveness.probedKeys,
  };
}

/** Prints a violation as a timeline, without the operations that are not needed for it. */
export function describeFailure(violation: Violation, history: History, reads: readonly FinalRead[]): string {
  const name = nameOf(violation);
  const operations = history.operations.filter((operation) => nameOf(operation) === name);
  const own = withFinalReads(
    { ...history, operations },
    reads.filter((read) => nameOf(read) === name),
  );
  const [shrunk] = violation.deadEnd === undefined ? [] : checkHistory(shrink(own)).violations;
  return describeViolation(shrunk ?? violation);
}
