import { asRefusal, StatementFailed } from "../../database/statement-errors.ts";
import { type Deadline, isExpired, onlyValue, Rejected, type Settled } from "../../domain/operation.ts";
import { deadlinePassed, Refusal } from "../../domain/refusal.ts";
import { activeCalls, type CallSpan } from "../../telemetry/tracing.ts";
import { type Decision, FairQueue, type TenantLimiter, UNLIMITED } from "./fair-queue.ts";
import type { Turns } from "./turns.ts";

/** How a batcher gathers operations into statements. */
export interface BatcherOptions<Op, Row> {
  /** Names the queue for the observer of `limiter`. Unset: the queue is not observed. */
  readonly statement?: string;
  /**
   * Returns an operation's name. A statement never holds two operations of one name: Postgres changes a row
   * once per statement.
   */
  readonly nameOf: (op: Op) => string;
  /**
   * Returns the tenant of an operation. If more operations are queued than a statement takes, tenants take
   * turns. Unset: all operations share one queue.
   */
  readonly tenantOf?: (op: Op) => number;
  /** Limits each tenant's operations in flight. Unset: no limit. */
  readonly limiter?: TenantLimiter;
  /** Returns how many bytes an operation adds to its statement. Unset: too few to count. */
  readonly bytesOf?: (op: Op) => number;
  /**
   * Runs one statement for operations of distinct names, and returns a row for each, in the same order, or an
   * error that concerns it alone.
   */
  readonly execute: (ops: readonly Op[]) => Promise<readonly Settled<Row>[]>;
  /**
   * Derives the row of a duplicate, an operation queued with another of the same name, from the row of the
   * first: as if it had run right after the first. Unset: a duplicate waits for a later statement.
   */
  readonly rowForDuplicate?: (row: Row) => Row;
  /**
   * Called once for each call of `submitAll`. Returns a function that converts each row before it is kept
   * until the call's last operation has settled. Unset: rows are kept as they are.
   */
  readonly createRowConverter?: () => (row: Row) => Row;
  /** Maximum statements in flight. Few: operations that arrive while they run share the next one. */
  readonly maxInFlight: number;
  /** Returns the turns that the statements share with those of other batchers. Unset: they wait for no others. */
  readonly turns?: () => Turns;
  /** Maximum queued operations. Unset: MAX_QUEUED. */
  readonly maxQueued?: number;
}

/** Gathers concurrent operations of all callers into few statements. */
export interface Batcher<Op, Row> {
  /**
   * Queues an operation for the next statement. If the batcher is idle, the statement is sent in this turn of
   * the event loop.
   *
   * @throws Refusal OVERLOADED if the tenant's queue is full, or DEADLINE_EXCEEDED if the deadline passed
   *   before the statement was sent. In both cases the operation had no effect. Otherwise the error of
   *   `execute`, or RECORD_CONTENDED instead of a lock conflict.
   */
  submit(op: Op, deadline: Deadline): Promise<Row>;
  /**
   * Queues operations as if each were submitted alone. Resolves when all of them have settled, each at the
   * index of its operation, with a row or with the error that `submit` throws. Never rejects. All share one
   * promise: a promise for each costs more than its row.
   */
  submitAll(ops: readonly Op[], deadline: Deadline): Promise<readonly Settled<Row>[]>;
}

/**
 * Maximum operations per statement. Larger statements are no faster in Postgres, and their operations wait
 * longer for each other. The floor of fencing tokens rises by more for each statement (token-floor.ts).
 */
export const MAX_BATCH = 256;
/**
 * A statement that holds this many bytes takes no more operations, so that statements bound memory, not
 * callers.
 */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/**
 * Maximum queued operations. A single tenant may queue half of it: at 10,000 rows a second and replica, more
 * would wait longer than any sensible deadline.
 */
export const MAX_QUEUED = 40_000;
const OVERLOADED_RETRY_AFTER_MS = 200;
/** Statements in flight while the operations of a failed statement are retried one by one. */
const ISOLATION_WIDTH = 2;
/** The queue of operations without a tenant; tenants are numbered from 1. */
const NO_TENANT = 0;

/** A batcher whose calls may be parts of larger ones. */
export class StatementBatcher<Op, Row> implements Batcher<Op, Row> {
  readonly #options: BatcherOptions<Op, Row>;
  readonly #tenantOf: (op: Op) => number;
  readonly #limiter: TenantLimiter;
  readonly #queue: FairQueue<PendingOperation<Op, Row>>;
  readonly #waits: { observe(waitedMs: number): void } | undefined;
  #inFlight = 0;
  #flushScheduled = false;

  constructor(options: BatcherOptions<Op, Row>) {
    const { tenantOf = () => NO_TENANT, limiter = UNLIMITED, maxQueued = MAX_QUEUED } = options;
    this.#options = options;
    this.#tenantOf = tenantOf;
    this.#limiter = limiter;
    this.#queue = new FairQueue({
      maxItems: maxQueued,
      weightOf: limiter.weightOf,
      maxInFlightOf: (tenant) => limiter.maxInFlightOf(tenant, performance.now()),
      onHeld: limiter.observer?.heldToShare,
    });
    if (options.statement !== undefined)
      this.#waits = limiter.observer?.queueAdded(options.statement, () => this.#queue.size);
  }

  async submit(op: Op, deadline: Deadline): Promise<Row> {
    return onlyValue(await this.submitAll([op], deadline));
  }

  submitAll(ops: readonly Op[], deadline: Deadline): Promise<readonly Settled<Row>[]> {
    return this.submitPart(ops, deadline, this.#options.createRowConverter?.());
  }

  /** As `submitAll`, with the converter of the larger call. */
  submitPart(
    ops: readonly Op[],
    deadline: Deadline,
    keep: ((row: Row) => Row) | undefined,
  ): Promise<readonly Settled<Row>[]> {
    if (ops.length === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      const nowMs = performance.now();
      const call = new PendingCall<Row>({ size: ops.length, queuedAtMs: nowMs, deadline, resolve, keep });
      const previousOf = ops.length > 1 ? new Map<string, PendingOperation<Op, Row>>() : undefined;
      ops.forEach((op, index) => {
        const name = this.#options.nameOf(op);
        const tenant = this.#tenantOf(op);
        const pending = new PendingOperation({ op, name, tenant }, call, index, previousOf?.get(name));
        previousOf?.set(name, pending);
        this.#limiter.noteActivity(tenant, nowMs);
        if (!this.#queue.push(tenant, pending)) pending.settle(new Rejected(overloaded()));
      });
      this.#scheduleFlush();
    });
  }

  /** Flushes after the current turn of the event loop, so that calls that arrived in one read share a statement. */
  #scheduleFlush(): void {
    if (this.#queue.size === 0 || this.#flushScheduled || this.#inFlight >= this.#options.maxInFlight) return;
    this.#flushScheduled = true;
    const start = async () => {
      this.#flushScheduled = false;
      if (this.#queue.size > 0) await this.#flush();
    };
    const { turns } = this.#options;
    setImmediate(() => (turns === undefined ? void start() : turns().request(start)));
  }

  async #flush(): Promise<void> {
    const leaders = this.#takeLeaders();
    if (leaders.length === 0) return;
    this.#inFlight++;
    this.#scheduleFlush();
    try {
      await this.#execute(leaders);
    } finally {
      this.#inFlight--;
      for (const { tenant } of leaders) this.#queue.release(tenant);
      this.#scheduleFlush();
    }
  }

  /** Takes the operations of one statement off the queue. The first of each name leads its duplicates. */
  #takeLeaders(): PendingOperation<Op, Row>[] {
    const { rowForDuplicate, bytesOf } = this.#options;
    const leaders = new Map<string, PendingOperation<Op, Row>>();
    let bytes = 0;
    const nowMs = performance.now();
    this.#queue.take((pending): Decision => {
      if (pending.isExpired) {
        this.#drop(pending);
        return "remove";
      }
      // The previous operation of its call may be in a statement that began earlier: without it, this one could overtake it.
      const leader = leaders.get(pending.name) ?? pending.previousLeader;
      if (leader !== undefined && rowForDuplicate !== undefined) {
        leader.addDuplicate(pending);
        return "remove";
      }
      if (leader !== undefined || leaders.size >= MAX_BATCH || bytes >= MAX_BATCH_BYTES) return "keep";
      leaders.set(pending.name, pending);
      bytes += bytesOf?.(pending.op) ?? 0;
      this.#waits?.observe(nowMs - pending.queuedAtMs);
      return "take";
    });
    return [...leaders.values()];
  }

  /** Runs a statement for the leaders, and settles them and their duplicates. Never rejects. */
  async #execute(leaders: readonly PendingOperation<Op, Row>[]): Promise<void> {
    let rows: readonly Settled<Row>[];
    try {
      rows = await this.#executeTraced(leaders);
    } catch (error) {
      if (leaders.length > 1 && error instanceof StatementFailed) return this.#executeOneByOne(leaders);
      const rejected = new Rejected(asRefusal(error, "a lock on the record"));
      rows = leaders.map(() => rejected);
    }
    leaders.forEach((leader, i) => {
      this.#fulfil(leader, rows[i] as Settled<Row>);
    });
  }

  /** Runs a statement with the calls of its operations as the active ones. The flush began in the context of any call. */
  #executeTraced(leaders: readonly PendingOperation<Op, Row>[]): Promise<readonly Settled<Row>[]> {
    const ops = leaders.map(({ op }) => op);
    const calls = callsOf(leaders);
    if (calls === activeCalls.getStore()) return this.#options.execute(ops);
    return activeCalls.run(calls, () => this.#options.execute(ops));
  }

  /**
   * Runs a statement for each leader, so that an operation that Postgres refuses, or whose row is locked, fails
   * without the others.
   */
  async #executeOneByOne(leaders: readonly PendingOperation<Op, Row>[]): Promise<void> {
    const remaining = leaders[Symbol.iterator]();
    const worker = async () => {
      for (const leader of remaining) {
        const live = this.#withoutExpired(leader);
        if (live !== undefined) await this.#execute([live]);
      }
    };
    await Promise.all(Array.from({ length: ISOLATION_WIDTH }, worker));
  }

  /** Refuses an operation whose deadline has passed. It has no duplicates. */
  #drop(pending: PendingOperation<Op, Row>): void {
    pending.settle(new Rejected(deadlinePassed()));
    this.#limiter.observer?.droppedByDeadline();
  }

  /** Drops the operations of one name that have expired. Returns the first of the others, leading the rest, if any. */
  #withoutExpired(leader: PendingOperation<Op, Row>): PendingOperation<Op, Row> | undefined {
    const all = [leader, ...leader.duplicates];
    for (const pending of all) if (pending.isExpired) this.#drop(pending);
    const [first, ...others] = all.filter((pending) => !pending.isSettled);
    first?.lead(others);
    return first;
  }

  #fulfil(leader: PendingOperation<Op, Row>, row: Settled<Row>): void {
    leader.settle(row);
    const { rowForDuplicate } = this.#options;
    if (leader.duplicates.length === 0 || rowForDuplicate === undefined) return;
    const duplicateRow = row instanceof Rejected ? row : rowForDuplicate(row);
    for (const duplicate of leader.duplicates) duplicate.settle(duplicateRow);
  }
}

interface PendingCallOptions<Row> {
  /** The number of operations. */
  readonly size: number;
  /** When they were queued, in milliseconds of `performance.now()`. */
  readonly queuedAtMs: number;
  readonly deadline: Deadline;
  /** Called when all operations have settled. */
  readonly resolve: (settled: readonly Settled<Row>[]) => void;
  /** Converts each row before it is kept until then. */
  readonly keep: ((row: Row) => Row) | undefined;
}

interface Traced {
  readonly calls: readonly CallSpan[] | undefined;
}

/** Returns the distinct traced calls of operations; undefined if there are none, as always while tracing is off. */
function callsOf(
  leaders: readonly (Traced & { readonly duplicates: readonly Traced[] })[],
): readonly CallSpan[] | undefined {
  let all: Set<CallSpan> | undefined;
  for (const leader of leaders) {
    for (const { calls } of leader.duplicates.length === 0 ? [leader] : [leader, ...leader.duplicates]) {
      if (calls === undefined) continue;
      all ??= new Set();
      for (const call of calls) all.add(call);
    }
  }
  return all && [...all];
}

/** One call of `submitAll`: collects what its operations settle with. */
class PendingCall<Row> {
  readonly deadline: Deadline;
  readonly queuedAtMs: number;
  /** The traced calls on whose behalf the operations run. */
  readonly calls = activeCalls.getStore();
  readonly #resolve: (settled: readonly Settled<Row>[]) => void;
  readonly #keep: ((row: Row) => Row) | undefined;
  readonly #settled: Settled<Row>[];
  #unsettled: number;

  constructor({ size, queuedAtMs, deadline, resolve, keep }: PendingCallOptions<Row>) {
    this.deadline = deadline;
    this.queuedAtMs = queuedAtMs;
    this.#resolve = resolve;
    this.#keep = keep;
    this.#settled = new Array(size);
    this.#unsettled = size;
  }

  settle(index: number, settled: Settled<Row>): void {
    this.#settled[index] =
      this.#keep === undefined || settled instanceof Rejected ? settled : this.#keep(settled);
    this.#unsettled--;
    if (this.#unsettled === 0) this.#resolve(this.#settled);
  }
}

/** An operation that is queued or in a statement. */
class PendingOperation<Op, Row> {
  readonly op: Op;
  readonly name: string;
  readonly tenant: number;
  readonly #call: PendingCall<Row>;
  readonly #index: number;
  #isSettled = false;
  /** Later operations of the same name that get their row from this one's. */
  readonly duplicates: PendingOperation<Op, Row>[] = [];
  /** The operation of which this one is a duplicate. */
  #leader: PendingOperation<Op, Row> | undefined;
  #previous: PendingOperation<Op, Row> | undefined;

  /** @param previous is the previous operation of the same name in the same call, if any. */
  constructor(
    { op, name, tenant }: { readonly op: Op; readonly name: string; readonly tenant: number },
    call: PendingCall<Row>,
    index: number,
    previous: PendingOperation<Op, Row> | undefined,
  ) {
    this.op = op;
    this.name = name;
    this.tenant = tenant;
    this.#call = call;
    this.#index = index;
    this.#previous = previous;
  }

  /** Adds a duplicate, and the duplicates that it leads itself. */
  addDuplicate(duplicate: PendingOperation<Op, Row>): void {
    for (const added of [duplicate, ...duplicate.duplicates.splice(0)]) {
      this.duplicates.push(added);
      added.#leader = this;
    }
  }

  /** Replaces the operation's duplicates by others, and makes it its own leader. */
  lead(others: readonly PendingOperation<Op, Row>[]): void {
    this.#leader = undefined;
    this.duplicates.length = 0;
    for (const other of others) {
      other.duplicates.length = 0;
      this.addDuplicate(other);
    }
  }

  /** The leader of the previous operation of the same name in the same call, until it is settled. */
  get previousLeader(): PendingOperation<Op, Row> | undefined {
    if (this.#previous === undefined || this.#previous.isSettled) return undefined;
    return this.#previous.#leader ?? this.#previous;
  }

  /** Whether the deadline has passed, or the caller has cancelled. */
  get isExpired(): boolean {
    return isExpired(this.#call.deadline);
  }

  get queuedAtMs(): number {
    return this.#call.queuedAtMs;
  }

  /** The traced calls on whose behalf the operation runs. */
  get calls(): readonly CallSpan[] | undefined {
    return this.#call.calls;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  settle(settled: Settled<Row>): void {
    this.#isSettled = true;
    this.#previous = undefined;
    this.#call.settle(this.#index, settled);
  }
}

function overloaded(): Refusal {
  return new Refusal("OVERLOADED", "This replica has too many queued calls.", {
    retryAfterMs: OVERLOADED_RETRY_AFTER_MS,
  });
}
