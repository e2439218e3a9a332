import { type History, nameOf, type Operation, type RecordName } from "./operation.ts";
import { policyBook, restampsOf, restoresOf } from "./policies.ts";
import { type DeadEnd, search } from "./search.ts";

/** A waiting call that is answered IN_PROGRESS earlier than this before its wait ends woke without reason. */
const WAIT_TOLERANCE_MS = 20;

/** Returns the violations that a single operation of a key shows without the others. */
function checkAlone(operations: readonly Operation[]): Violation[] {
  return operations.flatMap((operation) => {
    const problems = [...foreignMarks(operation), ...wokenEarly(operation)];
    const { tenant, namespace, key } = operation;
    return problems.map(({ invariant, message }) => ({
      tenant,
      namespace,
      key,
      invariant,
      message: `${operation.id}: ${message}`,
      operations: [operation],
    }));
  });
}

type Problem = Pick<Violation, "invariant" | "message">;

function foreignMarks({ tenant, marks = [] }: Operation): Problem[] {
  const foreign = marks.filter((mark) => mark !== tenant);
  return foreign.map((mark) => ({
    invariant: 6,
    message: `${tenant} was shown data with the mark of ${mark}`,
  }));
}

function wokenEarly({ request, answer, invokedAtMs, returnedAtMs }: Operation): Problem[] {
  if (request.kind !== "claim" || request.waitMs === undefined || answer.kind !== "inProgress") return [];
  const waitedMs = returnedAtMs - invokedAtMs;
  if (waitedMs >= request.waitMs - WAIT_TOLERANCE_MS) return [];
  return [
    {
      invariant: 13,
      message: `woken after ${waitedMs.toFixed(0)} of ${request.waitMs} ms, with IN_PROGRESS`,
    },
  ];
}

/** A violation of the contract. */
export interface Violation extends RecordName {
  /** The number of the first violated invariant. */
  readonly invariant: number;
  readonly message: string;
  /** The operations on the key, all or those that are needed for the violation. */
  readonly operations: readonly Operation[];
  /** Where the search for a legal order ended. */
  readonly deadEnd?: DeadEnd;
}

/** The verdict on a history. It holds only if there is neither a violation nor a timeout. */
export interface Verdict {
  readonly keys: number;
  readonly operations: number;
  readonly violations: readonly Violation[];
  /** Keys for which the budget ran out. Nothing is known of them, so they are not a pass. */
  readonly timeouts: readonly RecordName[];
}

export interface CheckOptions {
  /**
   * How much later than its last possible moment the end of a lease may be noticed. Timestamps are cut to
   * milliseconds or microseconds, and a timer may fire a little early.
   */
  readonly toleranceMs?: number;
  /** How many operations the search may place per key, over all orders that it tries. */
  readonly budget?: number;
}

const TOLERANCE_MS = 20;
/**
 * About ten seconds. A legal history of 200 operations takes a few hundred; eight of 60,000 took more than 100,000, and none
 * more than this.
 */
const BUDGET = 1_000_000;

/** Judges a history key by key, since no operation touches two keys. */
export function checkHistory(history: History, options: CheckOptions = {}): Verdict {
  const { toleranceMs = TOLERANCE_MS, budget = BUDGET } = options;
  const { clockMoves = [] } = history;
  const violations: Violation[] = [];
  const timeouts: RecordName[] = [];
  const keys = Map.groupBy(history.operations, nameOf);
  for (const own of keys.values()) {
    const [first] = own;
    if (first === undefined) continue;
    const { tenant, namespace, key } = first;
    violations.push(...checkAlone(own));
    const book = policyBook(history, tenant, namespace);
    const operations = [
      ...own,
      ...restampsOf(book, key).map((restamp) => ({ ...restamp, key })),
      ...restoresOf(book.restores, { tenant, namespace, key }, own),
    ];
    const result = search(operations, { book, toleranceMs, budget, clockMoves });
    if (result.kind === "timeout") timeouts.push({ tenant, namespace, key });
    if (result.kind === "illegal") {
      const { deadEnd } = result;
      violations.push({ tenant, namespace, key, operations: own, deadEnd, ...explain(deadEnd) });
    }
  }
  return { keys: keys.size, operations: history.operations.length, violations, timeouts };
}

/**
 * Explains a dead end by the operation that returned first among those that could be next: it had to be next.
 */
function explain({ stuck }: DeadEnd): Pick<Violation, "invariant" | "message"> {
  const [first] = stuck.toSorted((a, b) => a.operation.returnedAtMs - b.operation.returnedAtMs);
  // The first reason is for the record, if its retention may still run; otherwise for its absence.
  const why = first?.reasons.at(0);
  if (first === undefined || why === undefined) return { invariant: 11, message: "no legal order" };
  return { invariant: why.invariant, message: `${first.operation.id}: ${why.because}` };
}
