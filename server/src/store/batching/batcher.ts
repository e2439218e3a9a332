import type { Deadline } from "../../domain/deadline.ts";
import { Refusal } from "../../domain/refusal.ts";
import { onlyValue, Rejected, type Settled } from "../../domain/settled.ts";
import { StatementFailed } from "../pool.ts";
import { createFairQueue, type Offered } from "./fair-queue.ts";
import { Submission, Waiting } from "./submission.ts";
import { type TenantLimiter, UNLIMITED } from "./tenant-limiter.ts";

/** How a batcher gathers calls. */
export interface BatcherOptions<Op, Row> {
  /** Two operations of one name never share a statement: Postgres takes a row once per statement. */
  readonly nameOf: (op: Op) => string;
  /** Whose operation it is: with more queued than a statement takes, tenants take turns. Undefined: nobody's. */
  readonly tenantOf?: (op: Op) => number;
  /** What a tenant may have of the statements; undefined: whatever fits. */
  readonly limiter?: TenantLimiter;
  /** How many bytes an operation adds to its statement; undefined: too few to count. */
  readonly bytesOf?: (op: Op) => number;
  /** Runs one statement for operations of distinct names, and answers each, in order. */
  readonly execute: (ops: readonly Op[]) => Promise<readonly Row[]>;
  /**
   * What an operation can be told that came in with another of the same name, from that one's row: read as if it had
   * run right after it. Undefined: it waits for a later statement.
   */
  readonly follow?: (row: Row) => Row;
  /** Makes what a submission keeps of each row until its last one ends; called for each submission. Undefined: the row. */
  readonly keeping?: () => (row: Row) => Row;
  /** Statements at once. Few: what comes in while they run travels together in the next. */
  readonly maxInFlight: number;
}

/** Gathers concurrent calls, whoever makes them, into few statements. */
export interface Batcher<Op, Row> {
  /**
   * Queues an operation for the next statement. A lone one waits for nobody: it leaves in this turn of the event loop.
   *
   * @throws Refusal OVERLOADED if the tenant's queue is full, or DEADLINE_EXCEEDED if nobody waits any more when its turn
   *   comes; either way it had no effect.
   */
  submit(op: Op, deadline: Deadline): Promise<Row>;
  /**
   * Queues operations as if each were submitted alone, and answers when all of them have settled, each in its place, with a
   * row or with what `submit` throws. One promise for all of them: a promise for each costs more than its row.
   */
  submitAll(ops: readonly Op[], deadline: Deadline): Promise<readonly Settled<Row>[]>;
}

/**
 * Rows per statement: beyond this Postgres gains nothing, and the calls in it wait longer for each other. Each has a fencing
 * token of its statement's, of which there are 1,024 (server/decisions/0001-one-statement-decides.md).
 */
const MAX_BATCH = 256;
/** A statement that carries this much is sent with what it has: memory is bounded by statements, not by callers. */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/**
 * A tenant alone may queue half of it: at 10,000 rows a second and replica, more than that would be past any sensible
 * deadline.
 */
const MAX_QUEUED = 40_000;
const OVERLOADED_RETRY_AFTER_MS = 200;
const CONTENDED_RETRY_AFTER_MS = 500;
/** Statements at once while a batch that failed is retried one by one. */
const ISOLATION_WIDTH = 2;
/** Tenants are numbered from 1. */
const NOBODY = 0;

/** @see Batcher */
export function createBatcher<Op, Row>(options: BatcherOptions<Op, Row>): Batcher<Op, Row> {
  const { nameOf, tenantOf = () => NOBODY, limiter = UNLIMITED } = options;
  const queue = createFairQueue<Waiting<Op, Row>>({
    maxItems: MAX_QUEUED,
    weightOf: limiter.weightOf,
    maxInFlightOf: (tenant) => limiter.maxInFlightOf(tenant, performance.now()),
  });
  let inFlight = 0;
  let flushScheduled = false;

  function submitAll(ops: readonly Op[], deadline: Deadline): Promise<readonly Settled<Row>[]> {
    if (ops.length === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      const submission = new Submission<Row>(ops.length, deadline, resolve, options.keeping?.());
      const nowMs = performance.now();
      ops.forEach((op, place) => {
        const waiting = new Waiting(op, nameOf(op), submission, place);
        const tenant = tenantOf(op);
        limiter.noteActivity(tenant, nowMs);
        if (!queue.push(tenant, waiting)) waiting.end(new Rejected(overloaded()));
      });
      scheduleMore();
    });
  }

  /** After the current turn of the event loop, so that calls that arrived in one read leave in one statement. */
  function scheduleFlush(): void {
    if (flushScheduled || inFlight >= options.maxInFlight) return;
    flushScheduled = true;
    setImmediate(() => {
      flushScheduled = false;
      if (queue.size > 0) void flush();
    });
  }

  async function flush(): Promise<void> {
    const leaders = takeLeaders();
    if (leaders.length === 0) return;
    inFlight++;
    scheduleMore();
    try {
      await settle(leaders);
    } finally {
      inFlight--;
      for (const { op } of leaders) queue.done(tenantOf(op));
      scheduleMore();
    }
  }

  function scheduleMore(): void {
    if (queue.size > 0) scheduleFlush();
  }

  /** Takes a statement's worth of distinct names off the queue; the first of a name leads the others of it. */
  function takeLeaders(): Waiting<Op, Row>[] {
    const leaders = new Map<string, Waiting<Op, Row>>();
    let bytes = 0;
    queue.take((waiting): Offered => {
      if (waiting.isOver) {
        waiting.end(new Rejected(expired()));
        return "free";
      }
      const leader = leaders.get(waiting.name);
      if (leader !== undefined && options.follow !== undefined) {
        leader.followers.push(waiting);
        return "free";
      }
      if (leader !== undefined || leaders.size >= MAX_BATCH || bytes >= MAX_BATCH_BYTES) return "stays";
      leaders.set(waiting.name, waiting);
      bytes += options.bytesOf?.(waiting.op) ?? 0;
      return "taken";
    });
    return [...leaders.values()];
  }

  /** Ends every operation of the leaders and their followers; never rejects. */
  async function settle(leaders: readonly Waiting<Op, Row>[]): Promise<void> {
    let rows: readonly Row[];
    try {
      rows = await options.execute(leaders.map(({ op }) => op));
    } catch (error) {
      if (leaders.length > 1 && error instanceof StatementFailed) await isolate(leaders);
      else fail(leaders, new Rejected(asRefusal(error)));
      return;
    }
    leaders.forEach((leader, i) => {
      answer(leader, rows[i] as Row);
    });
  }

  /** One operation that Postgres refuses, or that waits for a locked row, must fail alone: each gets its own statement. */
  async function isolate(leaders: readonly Waiting<Op, Row>[]): Promise<void> {
    const rest = leaders[Symbol.iterator]();
    const worker = async () => {
      for (const leader of rest) {
        const awaited = withoutExpired(leader);
        if (awaited !== undefined) await settle([awaited]);
      }
    };
    await Promise.all(Array.from({ length: ISOLATION_WIDTH }, worker));
  }

  /** Ends those of one name whose deadline has passed since; the first of the others leads them. Undefined: there is none. */
  function withoutExpired(leader: Waiting<Op, Row>): Waiting<Op, Row> | undefined {
    const all = [leader, ...leader.followers];
    for (const each of all) if (each.isOver) each.end(new Rejected(expired()));
    const [first, ...others] = all.filter((each) => !each.hasEnded);
    first?.followers.splice(0, first.followers.length, ...others);
    return first;
  }

  function answer(leader: Waiting<Op, Row>, row: Row): void {
    leader.end(row);
    if (leader.followers.length === 0 || options.follow === undefined) return;
    const seen = options.follow(row);
    for (const follower of leader.followers) follower.end(seen);
  }

  function fail(leaders: readonly Waiting<Op, Row>[], failed: Rejected): void {
    for (const leader of leaders) {
      leader.end(failed);
      for (const follower of leader.followers) follower.end(failed);
    }
  }

  return {
    submit: async (op, deadline) => onlyValue(await submitAll([op], deadline)),
    submitAll,
  };
}

function expired(): Refusal {
  return new Refusal("DEADLINE_EXCEEDED", "The deadline passed before the database was reached.");
}

function overloaded(): Refusal {
  return new Refusal("OVERLOADED", "This replica has more calls queued than it takes on.", {
    retryAfterMs: OVERLOADED_RETRY_AFTER_MS,
  });
}

/** Somebody else keeps the row locked: no defect, and nothing was changed. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof StatementFailed && error.isLockConflict)) return error;
  return new Refusal("RECORD_CONTENDED", "The record is held by another transaction.", {
    retryAfterMs: CONTENDED_RETRY_AFTER_MS,
    cause: error,
  });
}
