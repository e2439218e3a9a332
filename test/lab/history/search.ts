import { databaseClock, reclaimClock, retentionClock, retentionFollowedMs } from "./clock-moves.ts";
import type { Moment } from "./moment.ts";
import { type ClockMove, isDefinite, type Operation } from "./operation.ts";
import type { PolicyBook } from "./policies.ts";
import { ABSENT, type Illegal, illegal, isState, type State, stateKey } from "./state.ts";
import { step } from "./step.ts";
import { type StandIn, standIns } from "./unknown-claims.ts";

export interface SearchOptions {
  readonly book: PolicyBook;
  /** How much later than its last possible moment the end of a lease or a retention may be noticed. */
  readonly toleranceMs: number;
  readonly clockMoves: readonly ClockMove[];
  /** How many operations may be placed, over all orders that are tried. */
  readonly budget: number;
}

/** The result of a search for a legal order of one key's operations. */
export type SearchResult =
  | { readonly kind: "legal" }
  | { readonly kind: "illegal"; readonly deadEnd: DeadEnd }
  /** The budget ran out: nothing is known, so it is not a pass. */
  | { readonly kind: "timeout" };

/** The longest legal order that was found, and why none of the next operations is legal. */
export interface DeadEnd {
  readonly placed: readonly Operation[];
  readonly state: State;
  readonly stuck: readonly { readonly operation: Operation; readonly reasons: readonly Illegal[] }[];
}

/**
 * Searches an order of one key's operations in which each takes effect at one instant of its call and is
 * answered as the model says (Wing and Gong's search, with Lowe's memory of visited states). An operation of
 * unknown outcome may take effect at any time after it was invoked, or never.
 */
export function search(operations: readonly Operation[], options: SearchOptions): SearchResult {
  return new Search(operations, options).run();
}

interface Next {
  readonly index: number;
  readonly states: readonly State[];
}

class Search {
  readonly #options: SearchOptions;
  /** In the order of their invocation; `#taken` and the memory use indexes into this. */
  readonly #operations: readonly Operation[];
  /** The indexes of definite operations, in the order of their return. */
  readonly #byReturn: readonly number[];
  /** The earlier items of an operation's batch, by index. */
  readonly #predecessors: ReadonlyMap<number, readonly number[]>;
  readonly #standIns: ReadonlyMap<Operation, StandIn>;
  readonly #taken: boolean[];
  readonly #order: number[] = [];
  readonly #visited = new Set<string>();
  #mask = 0n;
  #budget: number;
  #definitePlaced = -1;
  #deadEnd: DeadEnd = { placed: [], state: ABSENT, stuck: [] };

  constructor(operations: readonly Operation[], options: SearchOptions) {
    this.#options = options;
    this.#budget = options.budget;
    this.#operations = operations.toSorted((a, b) => a.invokedAtMs - b.invokedAtMs);
    this.#taken = this.#operations.map(() => false);
    this.#standIns = standIns(operations, options.book.policy);
    this.#byReturn = [...this.#operations.keys()]
      .filter((index) => isDefinite(this.#at(index)))
      .sort((a, b) => this.#at(a).returnedAtMs - this.#at(b).returnedAtMs);
    this.#predecessors = predecessorsInBatches(this.#operations);
  }

  run(): SearchResult {
    const found = this.#visit(ABSENT, 0);
    if (found) return { kind: "legal" };
    if (this.#budget <= 0) return { kind: "timeout" };
    return { kind: "illegal", deadEnd: this.#deadEnd };
  }

  /** @param definitePlaced the number of definite operations in the order so far. */
  #visit(state: State, definitePlaced: number): boolean {
    const left = this.#byReturn.filter((index) => !this.#taken[index]);
    if (left.length === 0) return true;
    const memory = `${this.#mask.toString(36)}|${stateKey(state)}`;
    if (this.#visited.has(memory)) return false;
    this.#visited.add(memory);
    const reasons = new Map<Operation, Illegal[]>();
    for (const { index, states } of this.#nexts(state, left, reasons)) {
      for (const next of states) {
        if (this.#budget-- <= 0) return false;
        this.#take(index);
        const legal = this.#visit(next, definitePlaced + (isDefinite(this.#at(index)) ? 1 : 0));
        if (legal) return true;
        this.#putBack(index);
      }
    }
    this.#noteDeadEnd(state, definitePlaced, reasons);
    return false;
  }

  /** Keeps the longest order, and of two equally long ones the one with fewer effects of unknown outcome. */
  #noteDeadEnd(state: State, definitePlaced: number, reasons: ReadonlyMap<Operation, Illegal[]>): void {
    const { placed } = this.#deadEnd;
    const isAsLong = definitePlaced === this.#definitePlaced;
    if (definitePlaced < this.#definitePlaced || (isAsLong && this.#order.length >= placed.length)) return;
    this.#definitePlaced = definitePlaced;
    this.#deadEnd = {
      placed: this.#order.map((index) => this.#at(index)),
      state,
      stuck: [...reasons].map(([operation, why]) => ({ operation, reasons: why })),
    };
  }

  /**
   * Returns the operations that may come next with the states that they may leave: definite ones first, by
   * their return.
   */
  #nexts(state: State, left: readonly number[], reasons: Map<Operation, Illegal[]>): readonly Next[] {
    const firstReturnMs = this.#at(left[0] ?? 0).returnedAtMs;
    const nexts: Next[] = [];
    for (const index of [...left, ...this.#unknownsInvokedBy(firstReturnMs)]) {
      const operation = this.#at(index);
      if (operation.invokedAtMs > firstReturnMs) continue;
      const acting = this.#standIns.get(operation)?.operation ?? operation;
      const at = { from: acting.invokedAtMs, to: Math.min(acting.returnedAtMs, firstReturnMs) };
      const { clockMoves } = this.#options;
      const moment: Moment = {
        ...this.#options,
        operation: acting,
        clock: databaseClock(at, clockMoves),
        reclaimClock: reclaimClock(at, clockMoves),
        retentionClock: retentionClock(at, clockMoves),
        retentionFollowedMs: (stampedAtMs) => retentionFollowedMs(stampedAtMs, at.to, clockMoves),
      };
      const states: State[] = [];
      for (const outcome of this.#mustWait(index, left) ?? step(state, moment)) {
        if (isState(outcome)) states.push(outcome);
        else if (isDefinite(operation)) reasons.set(operation, [...(reasons.get(operation) ?? []), outcome]);
      }
      if (states.includes(state) && isOnceAndForAll(operation)) return [{ index, states: [state] }];
      if (states.length > 0) nexts.push({ index, states });
    }
    return nexts;
  }

  /**
   * Returns operations of unknown outcome that were invoked by then; of interchangeable ones only the first.
   */
  #unknownsInvokedBy(ms: number): number[] {
    const found: number[] = [];
    const kinds = new Set<string>();
    for (const [index, operation] of this.#operations.entries()) {
      if (operation.invokedAtMs > ms) break;
      if (this.#taken[index] || isDefinite(operation)) continue;
      const kind = this.#standIns.get(operation)?.kind ?? operation.id;
      if (!kinds.has(kind)) found.push(index);
      kinds.add(kind);
    }
    return found;
  }

  /**
   * Returns why an operation can't be next in any state: an earlier item of its batch, or a smaller token,
   * must come first.
   */
  #mustWait(index: number, left: readonly number[]): readonly Illegal[] | undefined {
    const earlier = this.#predecessors.get(index)?.find((predecessor) => !this.#taken[predecessor]);
    if (earlier !== undefined) return [illegal(11, `comes after ${this.#at(earlier).id} of its batch`)];
    const { answer } = this.#at(index);
    if (answer.kind !== "claimed") return undefined;
    const smaller = left.find((other) => {
      const { answer: before } = this.#at(other);
      return before.kind === "claimed" && before.token < answer.token;
    });
    if (smaller === undefined) return undefined;
    return [illegal(2, `token ${answer.token} comes after the smaller one of ${this.#at(smaller).id}`)];
  }

  #take(index: number): void {
    this.#taken[index] = true;
    this.#mask |= 1n << BigInt(index);
    this.#order.push(index);
  }

  #putBack(index: number): void {
    this.#taken[index] = false;
    this.#mask &= ~(1n << BigInt(index));
    this.#order.pop();
  }

  #at(index: number): Operation {
    const operation = this.#operations[index];
    if (operation === undefined) throw new Error(`no operation ${index}`);
    return operation;
  }
}

/**
 * Returns whether an operation that changes nothing now would change nothing later either, so that it can
 * come now and no other order has to be tried. A claim, Complete or Release acts on one token, and tokens are
 * never reused; an administrator acts on the current record, and an extension counts from its own moment.
 */
function isOnceAndForAll({ request, answer }: Operation): boolean {
  if (answer.kind === "unknown") return false;
  switch (request.kind) {
    case "claim":
    case "complete":
    case "release":
    case "lookup":
      return true;
    default:
      return answer.kind === "refused";
  }
}

/**
 * Returns the items that must come before each item of a batch; an item of unknown outcome may come after
 * later ones.
 */
function predecessorsInBatches(operations: readonly Operation[]): Map<number, number[]> {
  const predecessors = new Map<number, number[]>();
  for (const [index, { batch }] of operations.entries()) {
    if (batch === undefined) continue;
    const earlier = [...operations.keys()].filter((other) => {
      const operation = operations[other];
      return (
        operation?.batch?.id === batch.id && operation.batch.index < batch.index && isDefinite(operation)
      );
    });
    if (earlier.length > 0) predecessors.set(index, earlier);
  }
  return predecessors;
}
