import { Refusal } from "../../domain/refusal.ts";
import { type RecordId, recordName } from "../record.ts";
import { createRoundRobin } from "./round-robin.ts";

/** Calls that wait for a record to resolve. */
export type Waiters = ReturnType<typeof createWaiters>;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A record, and the calls that wait for it; removed with the last of them. */
interface AwaitedRecord {
  readonly id: RecordId;
  readonly waiters: Set<Waiter>;
}

/** Ten statements per second and replica. */
const CHECK_EVERY_MS = 100;
/** Records per statement. If more are awaited, tenants are served in rotation, and so are the records of each. */
const MAX_RECORDS_PER_CHECK = 1000;
const RETRY_AFTER_MS = 100;
/**
 * The interval between two checks of a waiting caller. A cached credential is refreshed in the background when it is used at an
 * age of 4 s, and the next use sees the change: a waiter is rejected within 4 s and twice this interval, which is below the
 * contract's 10 s.
 */
const CALLER_CHECK_EVERY_MS = 2000;

/** Creates waiting calls. A long function, because all of its parts share the state at its beginning. */
export function createWaiters({
  findResolved,
  onCheckFailed,
  onFirstWaiter,
  onLastWaiterGone,
  checkEveryMs = CHECK_EVERY_MS,
}: {
  /** Returns the indexes of those records that are no longer in progress under a running lease; one statement. */
  readonly findResolved: (ids: readonly RecordId[]) => Promise<ReadonlySet<number>>;
  /** Receives the error of a failed check; the check is retried at the next interval. */
  readonly onCheckFailed: (error: unknown) => void;
  /** Receives the `recordName` when the first call starts to wait for a record, and when the last one has left. */
  readonly onFirstWaiter: (name: string) => void;
  readonly onLastWaiterGone: (name: string) => void;
  /** The interval between two checks, in milliseconds. A check is one statement for all waiting calls. */
  readonly checkEveryMs?: number;
}) {
  const awaited = new Map<string, AwaitedRecord>();
  /** The names in `awaited`, grouped by tenant. */
  const rotation = createRoundRobin();
  let waiting = 0;
  let isDraining = false;
  let isCheckScheduled = false;

  /**
   * Resolves once the record may have resolved, or after `timeoutMs`; the caller then claims again. Calls `checkCaller` every
   * two seconds, and rejects with its error.
   *
   * @throws Refusal CANCELLED as soon as `signal` aborts; SHUTTING_DOWN once `drain` was called.
   */
  function wait(
    id: RecordId,
    timeoutMs: number,
    signal: AbortSignal,
    checkCaller?: () => Promise<void>,
  ): Promise<void> {
    if (isDraining) return Promise.reject(shuttingDown());
    if (signal.aborted) return Promise.reject(cancelled());
    const { waiter, settled } = createWaiter(timeoutMs, signal, checkCaller, () => remove(id, waiter));
    add(id, waiter);
    return settled;
  }

  function add(id: RecordId, waiter: Waiter): void {
    const name = recordName(id);
    const record = awaited.get(name) ?? { id, waiters: new Set() };
    record.waiters.add(waiter);
    if (!awaited.has(name)) {
      onFirstWaiter(name);
      rotation.add(id.tenantId, name);
    }
    awaited.set(name, record);
    waiting++;
    if (!isCheckScheduled) scheduleCheck();
  }

  function remove(id: RecordId, waiter: Waiter): void {
    const name = recordName(id);
    const record = awaited.get(name);
    if (!record?.waiters.delete(waiter)) return;
    waiting--;
    if (record.waiters.size > 0) return;
    awaited.delete(name);
    rotation.remove(id.tenantId, name);
    onLastWaiterGone(name);
  }

  function scheduleCheck(): void {
    isCheckScheduled = true;
    setTimeout(() => {
      checkRecords()
        .catch(onCheckFailed)
        .finally(() => {
          isCheckScheduled = false;
          if (awaited.size > 0) scheduleCheck();
        });
    }, checkEveryMs);
  }

  async function checkRecords(): Promise<void> {
    const names = rotation.next(MAX_RECORDS_PER_CHECK);
    if (names.length === 0) return;
    const resolved = await findResolved(names.map((name) => (awaited.get(name) as AwaitedRecord).id));
    for (const index of resolved) wake(names[index] as string);
  }

  /** Wakes the calls that wait here for the record of this `recordName`, because it was or may have been settled. */
  function wake(name: string): void {
    // A lookup makes V8 keep a copy of the name: too much for every completion.
    if (awaited.size === 0) return;
    for (const waiter of awaited.get(name)?.waiters ?? []) waiter.resolve();
  }

  return {
    wait,
    wake,
    /** Rejects all waiting calls, and all later ones, with SHUTTING_DOWN. */
    drain(): void {
      isDraining = true;
      for (const { waiters } of awaited.values()) {
        for (const waiter of waiters) waiter.reject(shuttingDown());
      }
    },
    /** Returns how many calls are waiting. */
    count: () => waiting,
  };
}

/**
 * Returns a waiter, and the promise that it settles: from outside, after `timeoutMs`, when `signal` aborts or when a check of
 * the caller fails. `onLeave` is called first.
 */
function createWaiter(
  timeoutMs: number,
  signal: AbortSignal,
  checkCaller: (() => Promise<void>) | undefined,
  onLeave: () => void,
): { readonly waiter: Waiter; readonly settled: Promise<void> } {
  const { promise: settled, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => waiter.resolve(), timeoutMs);
  const abort = () => waiter.reject(cancelled());
  const check = () => void checkCaller?.().catch((error: unknown) => waiter.reject(error));
  const checks = checkCaller && setInterval(check, CALLER_CHECK_EVERY_MS);
  signal.addEventListener("abort", abort);
  const leave = () => {
    clearTimeout(timer);
    clearInterval(checks);
    signal.removeEventListener("abort", abort);
    onLeave();
  };
  const waiter: Waiter = {
    resolve: () => {
      leave();
      resolve();
    },
    reject: (error) => {
      leave();
      reject(error);
    },
  };
  return { waiter, settled };
}

function shuttingDown(): Refusal {
  return new Refusal("SHUTTING_DOWN", "This replica is shutting down; another one will answer.", {
    retryAfterMs: RETRY_AFTER_MS,
  });
}

function cancelled(): Refusal {
  return new Refusal("CANCELLED", "The caller disconnected.");
}
