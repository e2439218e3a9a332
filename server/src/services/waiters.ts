import { type RecordId, recordName } from "../domain/record.ts";
import { Refusal } from "../domain/refusal.ts";

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
  readonly onAwaited: (name: string) => void;
  readonly onAbandoned: (name: string) => void;
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
/** Keys per statement; with more being waited for, they take turns. */
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
  onAwaited,
  onAbandoned,
  tickMs = TICK_MS,
}: WaitersOptions): Waiters {
  /** In the order in which they are to be looked at: a name that was looked at goes to the end. */
  const places = new Map<string, Place>();
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
    if (!places.has(name)) onAwaited(name);
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
    onAbandoned(name);
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
    const turn = nextTurn();
    if (turn.length === 0) return;
    const resolved = await findResolved(turn.map(([, place]) => place.id));
    for (const [index, [name, place]] of turn.entries()) {
      if (resolved.has(index)) wakeAll(name);
      else if (places.get(name) === place) moveToEnd(name, place);
    }
  }

  /** Those to be looked at, without a list of all. */
  function nextTurn(): readonly (readonly [string, Place])[] {
    const turn: (readonly [string, Place])[] = [];
    for (const entry of places) {
      if (turn.push(entry) === MAX_KEYS_PER_LOOK) break;
    }
    return turn;
  }

  /** Only of a place that is still the name's: while the look went on, all may have left, and others come to a new one. */
  function moveToEnd(name: string, place: Place): void {
    places.delete(name);
    places.set(name, place);
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
