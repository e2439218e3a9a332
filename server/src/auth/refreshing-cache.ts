import { LRUCache } from "lru-cache";
import type { Deadline } from "../domain/deadline.ts";
import { createBatcher } from "../store/batching/batcher.ts";

/** What a cache holds for a while of what the database says. */
export interface RefreshingCache<Key, Value> {
  /**
   * At most `maxAgeMs` old, and not past its end; undefined if the database doesn't know the key.
   *
   * @throws Refusal whatever loading failed with, once what is held is too old.
   */
  get(key: Key, deadline: Deadline): Promise<Value | undefined>;
  /** The same, if it is at hand and needs no loading anew; undefined otherwise: `get` tells. */
  peek(key: Key, nowMs?: number): Value | undefined;
  /** Lets go of what is held of a key, and of what is being loaded: it was just changed. */
  drop(key: Key): void;
  /** Drops what is held of every key, and of what is being loaded. */
  clear(): void;
}

export interface RefreshingCacheOptions<Key, Value> {
  /** Loads many keys in few statements; a key that doesn't exist is missing from the map. */
  readonly load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>;
  /** How old an answer may be: the bound within which a change is effective on every replica. */
  readonly maxAgeMs: number;
  /** Older answers are still given, but loaded anew in the background, so that no call waits for it. */
  readonly refreshAfterMs: number;
  readonly maxEntries: number;
  /** How many bytes all values may take, as `bytesOf` counts them; the ones not used for longest go first. */
  readonly maxBytes?: number;
  readonly bytesOf?: (value: Value) => number;
  /**
   * When a value ends by itself, in `performance.now()` milliseconds: from then on only the database says whether it holds.
   * Undefined: none does.
   */
  readonly endsAtMs?: (value: Value) => number;
}

interface Entry<Value> {
  readonly value: Value | undefined;
  /** When its loading began: what it says may have been changed just after. In `performance.now()` milliseconds. */
  readonly asOfMs: number;
  refreshing: boolean;
}

/** That there is nothing is believed only this long: a key may just have been made. */
const MAX_ABSENCE_AGE_MS = 1000;
/** Keys that do not exist, which anybody can make up: apart from the values, so that they push none of them out. */
const MAX_ABSENCES = 1000;
const WHATEVER_IT_TAKES: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** @see RefreshingCache */
export function createRefreshingCache<Key extends string | number, Value>({
  load,
  maxAgeMs,
  refreshAfterMs,
  maxEntries,
  maxBytes,
  bytesOf = () => 1,
  endsAtMs = () => Number.POSITIVE_INFINITY,
}: RefreshingCacheOptions<Key, Value>): RefreshingCache<Key, Value> {
  const entries = new LRUCache<Key, Entry<Value>>({
    max: maxEntries,
    ...(maxBytes !== undefined && {
      maxSize: maxBytes,
      sizeCalculation: ({ value }) => (value === undefined ? 1 : bytesOf(value)),
    }),
  });
  const absences = new LRUCache<Key, Entry<Value>>({ max: MAX_ABSENCES });
  let lastDropAtMs = Number.NEGATIVE_INFINITY;
  const loads = createBatcher<Key, Entry<Value>>({
    nameOf: String,
    rowForDuplicate: (entry) => entry,
    maxInFlight: 1,
    async execute(keys) {
      const asOfMs = performance.now();
      const found = await load(keys);
      return keys.map((key) => ({ value: found.get(key), asOfMs, refreshing: false }));
    },
  });

  async function reload(key: Key, deadline: Deadline): Promise<Value | undefined> {
    const entry = await loads.submit(key, deadline);
    entries.delete(key);
    absences.delete(key);
    // What began to load before something was dropped may be what was dropped.
    if (entry.asOfMs <= lastDropAtMs) return entry.value;
    (entry.value === undefined ? absences : entries).set(key, entry);
    return entry.value;
  }

  function isTooOld({ value, asOfMs }: Entry<Value>, nowMs: number): boolean {
    if (value === undefined) return nowMs - asOfMs >= MAX_ABSENCE_AGE_MS;
    return nowMs - asOfMs >= maxAgeMs || nowMs >= endsAtMs(value);
  }

  return {
    async get(key, deadline) {
      const entry = entries.get(key) ?? absences.get(key);
      const nowMs = performance.now();
      if (entry === undefined || isTooOld(entry, nowMs)) return reload(key, deadline);
      if (nowMs - entry.asOfMs >= refreshAfterMs && !entry.refreshing) {
        entry.refreshing = true;
        // A failure shows once the entry is too old: then a call loads it, and gets the error.
        reload(key, WHATEVER_IT_TAKES).catch(() => {
          entry.refreshing = false;
        });
      }
      return entry.value;
    },
    peek(key, nowMs = performance.now()) {
      const entry = entries.peek(key);
      if (entry === undefined) return undefined;
      return nowMs - entry.asOfMs < refreshAfterMs && !isTooOld(entry, nowMs) ? entry.value : undefined;
    },
    drop(key) {
      entries.delete(key);
      absences.delete(key);
      lastDropAtMs = performance.now();
    },
    clear() {
      entries.clear();
      lastDropAtMs = performance.now();
    },
  };
}
