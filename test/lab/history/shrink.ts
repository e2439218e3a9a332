import { type CheckOptions, checkHistory } from "./check.ts";
import { type History, isDefinite, type Operation } from "./operation.ts";

/** A fraction of the usual budget: a step that needs more is not taken. */
const BUDGET = 20_000;

/**
 * Shrinks a failing history of one key to the operations that are needed for the failure.
 *
 * Each step only allows more than before, so that the rest fails for a reason that was there from the start:
 * a call that changed nothing is dropped, and so are calls after all others; a call that may have changed
 * something gets an unknown outcome. Dropping a grant, for example, would make legal operations after it look
 * illegal.
 *
 * @returns the history itself if it does not fail.
 */
export function shrink(history: History, options: CheckOptions = {}): History {
  const fails = (operations: readonly Operation[]) =>
    checkHistory({ ...history, operations }, { budget: BUDGET, ...options }).violations.length > 0;
  if (!fails(history.operations)) return history;
  let operations = history.operations;
  for (let before = -1; before !== weightOf(operations); ) {
    before = weightOf(operations);
    operations = withoutHalves(operations, fails);
    for (const operation of operations.toReversed()) {
      const weaker = without(operations, [operation]);
      if (weightOf(weaker) < weightOf(operations) && fails(weaker)) operations = weaker;
    }
  }
  return { ...history, operations };
}

/** Tries large steps first, so that a long history shrinks quickly. */
function withoutHalves(
  operations: readonly Operation[],
  fails: (operations: readonly Operation[]) => boolean,
): readonly Operation[] {
  let left = operations;
  for (let size = left.length / 2; size >= 2; size /= 2) {
    for (let start = 0; start < left.length; start += Math.ceil(size)) {
      const weaker = without(left, left.slice(start, start + Math.ceil(size)));
      if (weightOf(weaker) < weightOf(left) && fails(weaker)) left = weaker;
    }
  }
  return left;
}

/**
 * Returns the operations without these; those that may have changed something stay with an unknown outcome.
 */
function without(operations: readonly Operation[], dropped: readonly Operation[]): readonly Operation[] {
  const weaker = operations.flatMap((operation) => {
    if (!dropped.includes(operation)) return [operation];
    return mayChange(operation) ? [forgetOutcome(operation)] : [];
  });
  // An operation of unknown outcome that began after all definite ones had returned explains nothing.
  const lastReturnMs = Math.max(...weaker.filter(isDefinite).map(({ returnedAtMs }) => returnedAtMs));
  return weaker.filter((operation) => isDefinite(operation) || operation.invokedAtMs <= lastReturnMs);
}

function forgetOutcome(operation: Operation): Operation {
  const answer = { kind: "unknown", reason: "not needed" } as const;
  return { ...operation, answer, marks: [], returnedAtMs: Number.POSITIVE_INFINITY };
}

function mayChange({ request, answer }: Operation): boolean {
  if (request.kind === "lookup") return false;
  switch (answer.kind) {
    case "unknown":
    case "claimed":
    case "recorded":
    case "ok":
    case "malformed":
      return true;
    case "stored":
      return !answer.alreadyCompleted;
    default:
      return false;
  }
}

/** Returns a number that each step reduces. */
function weightOf(operations: readonly Operation[]): number {
  return operations.length + operations.filter(isDefinite).length;
}
