import { checkAlone } from "./check-alone.ts";
import { type History, nameOf, type Operation, type RecordName } from "./operation.ts";
import { policyBook, restampsOf } from "./policies.ts";
import { type DeadEnd, search } from "./search.ts";

/** Something that the contract does not allow. */
export interface Violation extends RecordName {
  /** Of the reliability design's numbered invariants: the first that was in the way. */
  readonly invariant: number;
  readonly message: string;
  /** Everything that happened to the key, or what of it matters. */
  readonly operations: readonly Operation[];
  /** Where the search for a legal order ended. */
  readonly deadEnd?: DeadEnd;
}

/** What is known of a history. It holds only if there is neither a violation nor a timeout. */
export interface Verdict {
  readonly keys: number;
  readonly operations: number;
  readonly violations: readonly Violation[];
  /** Keys for which the budget ran out. Nothing is known of them, and so they are no pass. */
  readonly timeouts: readonly RecordName[];
}

export interface CheckOptions {
  /**
   * How much later than its last possible moment the end of a lease may be noticed. Timestamps are cut to milliseconds
   * or microseconds on the way, and a timer may fire a little early.
   */
  readonly toleranceMs?: number;
  /** How many operations the search may place per key, over all the orders that it tries. */
  readonly budget?: number;
}

const TOLERANCE_MS = 20;
/**
 * Some ten seconds. A legal history of 200 operations takes some hundreds; of 60,000 that were simulated eight took more than
 * 100,000, and none more than this.
 */
const BUDGET = 1_000_000;

/** Judges a history: each key's for itself, since no operation touches two. */
export function checkHistory(history: History, options: CheckOptions = {}): Verdict {
  const { toleranceMs = TOLERANCE_MS, budget = BUDGET } = options;
  const violations: Violation[] = [];
  const timeouts: RecordName[] = [];
  const keys = Map.groupBy(history.operations, nameOf);
  for (const own of keys.values()) {
    const [first] = own;
    if (first === undefined) continue;
    const { tenant, namespace, key } = first;
    violations.push(...checkAlone(own));
    const book = policyBook(history, tenant, namespace);
    const operations = [...own, ...restampsOf(book, key).map((restamp) => ({ ...restamp, key }))];
    const result = search(operations, { book, toleranceMs, budget });
    if (result.kind === "timeout") timeouts.push({ tenant, namespace, key });
    if (result.kind === "illegal") {
      const { deadEnd } = result;
      violations.push({ tenant, namespace, key, operations: own, deadEnd, ...explain(deadEnd) });
    }
  }
  return { keys: keys.size, operations: history.operations.length, violations, timeouts };
}

/** Of the operations that might have come next, the one that returned first is the one that had to. */
function explain({ stuck }: DeadEnd): Pick<Violation, "invariant" | "message"> {
  const [first] = stuck.toSorted((a, b) => a.operation.returnedAtMs - b.operation.returnedAtMs);
  // The last reason is of the sighting that fits best: without the record where it can be gone, else with it.
  const why = first?.reasons.at(0);
  if (first === undefined || why === undefined) return { invariant: 11, message: "no legal order" };
  return { invariant: why.invariant, message: `${first.operation.id}: ${why.because}` };
}
