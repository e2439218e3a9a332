import type { Deadline } from "../domain/deadline.ts";
import { createBatcher } from "../store/batcher.ts";

/** What a cache holds for a while of what the database says. */
export interface RefreshingCache<Key, Value> {
  /**
   * At most `maxAgeMs` old; undefined if the database doesn't know the key.
   *
   * @throws Refusal whatever loading failed with, once what is held is too old.
   */
  get(key: Key, deadline: Deadline): Promise<Value | undefined>;
  /** The same, if it is at hand and needs no loading anew; undefined otherwise: `get` tells. */
  peek(key: Key): Value | undefined;
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
}

interface Entry<Value> {
  readonly value: Value | undefined;
  /** When its loading began: what it says may have been changed just after. In `performance.now()` milliseconds. */
  readonly asOfMs: number;
  refreshing: boolean;
}

/** That there is nothing is believed only this long: a key may just have been made. */
const MAX_ABSENCE_AGE_MS = 1000;
const WHATEVER_IT_TAKES: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** @see RefreshingCache */
export function createRefreshingCache<Key extends string | number, Value>({
  load,
  maxAgeMs,
  refreshAfterMs,
  maxEntries,
}: RefreshingCacheOptions<Key, Value>): RefreshingCache<Key, Value> {
  const entries = new Map<Key, Entry<Value>>();
  let lastDropAtMs = Number.NEGATIVE_INFINITY;
  const loads = createBatcher<Key, Entry<Value>>({
    nameOf: String,
    follow: (entry) => entry,
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
    // What began to load before something was dropped may be what was dropped.
    if (entry.asOfMs <= lastDropAtMs) return entry.value;
    entries.set(key, entry);
    if (entries.size > maxEntries) dropOldest();
    return entry.value;
  }

  function dropOldest(): void {
    for (const key of entries.keys()) {
      entries.delete(key);
      return;
    }
  }

  return {
    async get(key, deadline) {
      const entry = entries.get(key);
      if (entry === undefined) return reload(key, deadline);
      const ageMs = performance.now() - entry.asOfMs;
      if (ageMs >= (entry.value === undefined ? MAX_ABSENCE_AGE_MS : maxAgeMs)) return reload(key, deadline);
      if (ageMs >= refreshAfterMs && !entry.refreshing) {
        entry.refreshing = true;
        // A failure shows once the entry is too old: then a call loads it, and gets the error.
        reload(key, WHATEVER_IT_TAKES).catch(() => {
          entry.refreshing = false;
        });
      }
      return entry.value;
    },
    peek(key) {
      const entry = entries.get(key);
      return entry !== undefined && performance.now() - entry.asOfMs < refreshAfterMs
        ? entry.value
        : undefined;
    },
    drop(key) {
      entries.delete(key);
      lastDropAtMs = performance.now();
    },
    clear() {
      entries.clear();
      lastDropAtMs = performance.now();
    },
  };
}
