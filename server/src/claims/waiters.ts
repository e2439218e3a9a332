import { type RecordId, recordName } from "../domain/record.ts";
import { Refusal } from "../domain/refusal.ts";
import { createFairTurns } from "./fair-turns.ts";

/** Calls that wait for a record to resolve. */
export interface Waiters {
  /**
   * Resolves once the record may have resolved, or after `timeoutMs`; the caller then asks again. Meanwhile `mayStay` is
   * asked every two seconds; without it, the caller may.
   *
   * @throws Refusal CANCELLED as soon as `signal` aborts; SHUTTING_DOWN once `drain` was called.
   * @throws whatever `mayStay` rejects with.
   */
  wait(id: RecordId, timeoutMs: number, signal: AbortSignal, mayStay?: () => Promise<void>): Promise<void>;
  /** Wakes who waits here for the record of this `recordName`: it was settled, or may have been. */
  wake(name: string): void;
  /** Wakes everybody with SHUTTING_DOWN, and whoever comes after. */
  drain(): void;
  /** How many calls are waiting. */
  count(): number;
}

export interface WaitersOptions {
  /** Which of these records, by their places, are no longer in progress under a running lease; one statement. */
  readonly findResolved: (ids: readonly RecordId[]) => Promise<ReadonlySet<number>>;
  /** Told why a look failed; the next tick looks again. */
  readonly onLookFailed: (error: unknown) => void;
  /** Told of every record, by `recordName`, that is awaited here from now on, or no longer. */
  readonly onFirstWaiter: (name: string) => void;
  readonly onLastWaiterGone: (name: string) => void;
  /** From one look, of one statement, to the next, however many wait. */
  readonly tickMs?: number;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Where those wait who wait for one record; gone with the last of them. */
interface Place {
  readonly id: RecordId;
  readonly waiters: Set<Waiter>;
}

/** Ten statements a second and replica. */
const TICK_MS = 100;
/** Keys per statement; with more being waited for, tenants take turns, and so do the keys of each. */
const MAX_KEYS_PER_LOOK = 1000;
const RETRY_AFTER_MS = 100;
/**
 * Between two questions whether a waiter may stay. Memory refreshes what it knows of a credential when it is asked 4 s later,
 * and answers by it the next time: a waiter is told within 4 s and twice this, which is below the contract's 10 s.
 */
const ASK_EVERY_MS = 2000;

/** @see Waiters */
export function createWaiters({
  findResolved,
  onLookFailed,
  onFirstWaiter,
  onLastWaiterGone,
  tickMs = TICK_MS,
}: WaitersOptions): Waiters {
  const places = new Map<string, Place>();
  const turns = createFairTurns();
  let waiting = 0;
  let draining = false;
  let ticking = false;

  function wait(
    id: RecordId,
    timeoutMs: number,
    signal: AbortSignal,
    mayStay?: () => Promise<void>,
  ): Promise<void> {
    if (draining) return Promise.reject(shuttingDown());
    if (signal.aborted) return Promise.reject(cancelled());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiter.resolve(), timeoutMs);
      const abort = () => waiter.reject(cancelled());
      const ask = () => void mayStay?.().catch((error: unknown) => waiter.reject(error));
      const asking = mayStay && setInterval(ask, ASK_EVERY_MS);
      const leave = () => {
        clearTimeout(timer);
        clearInterval(asking);
        signal.removeEventListener("abort", abort);
        remove(id, waiter);
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
      signal.addEventListener("abort", abort);
      add(id, waiter);
    });
  }

  function add(id: RecordId, waiter: Waiter): void {
    const name = recordName(id);
    const place = places.get(name) ?? { id, waiters: new Set() };
    place.waiters.add(waiter);
    if (!places.has(name)) {
      onFirstWaiter(name);
      turns.add(id.tenantId, name);
    }
    places.set(name, place);
    waiting++;
    if (!ticking) scheduleLook();
  }

  function remove(id: RecordId, waiter: Waiter): void {
    const name = recordName(id);
    const place = places.get(name);
    if (!place?.waiters.delete(waiter)) return;
    waiting--;
    if (place.waiters.size > 0) return;
    places.delete(name);
    turns.remove(id.tenantId, name);
    onLastWaiterGone(name);
  }

  function scheduleLook(): void {
    ticking = true;
    setTimeout(() => {
      look()
        .catch(onLookFailed)
        .finally(() => {
          ticking = false;
          if (places.size > 0) scheduleLook();
        });
    }, tickMs);
  }

  async function look(): Promise<void> {
    const names = turns.next(MAX_KEYS_PER_LOOK);
    if (names.length === 0) return;
    const resolved = await findResolved(names.map((name) => (places.get(name) as Place).id));
    for (const index of resolved) wakeAll(names[index] as string);
  }

  function wakeAll(name: string): void {
    // V8 keeps a copy of each name that a map is asked for: too much for every completion.
    if (places.size === 0) return;
    for (const waiter of places.get(name)?.waiters ?? []) waiter.resolve();
  }

  return {
    wait,
    wake: wakeAll,
    drain() {
      draining = true;
      for (const { waiters } of places.values()) {
        for (const waiter of waiters) waiter.reject(shuttingDown());
      }
    },
    count: () => waiting,
  };
}

function shuttingDown(): Refusal {
  return new Refusal("SHUTTING_DOWN", "This replica is going away; another will answer.", {
    retryAfterMs: RETRY_AFTER_MS,
  });
}

function cancelled(): Refusal {
  return new Refusal("CANCELLED", "The caller went away.");
}
