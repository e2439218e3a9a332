import { LRUCache } from "lru-cache";

/**
 * Measures the share of repeats among the claims of a namespace. Redis is asked before Postgres only where
 * repeats are frequent, so that a fresh claim elsewhere does not pay for it.
 */
export interface RepeatMeter {
  /** Counts a claim that was answered with a result (`repeat`) or with anything else. */
  count(namespace: string, repeat: boolean): void;
  /** Returns whether at least one in ten recent claims was a repeat. */
  repeatsOften(namespace: string): boolean;
}

/** Weight of the newest claim: about the last two hundred claims count. */
const WEIGHT = 1 / 100;
/** A round trip to Redis costs about a tenth of a statement, so that it pays from one repeat in ten. */
const OFTEN = 0.1;
/** The least recently counted namespaces are evicted beyond this number. */
const MAX_NAMESPACES = 10_000;

/** Creates a meter without counts. A namespace's name must be unique among all tenants. */
export function createRepeatMeter(): RepeatMeter {
  const shares = new LRUCache<string, number>({ max: MAX_NAMESPACES });
  return {
    count(namespace, repeat) {
      const share = shares.get(namespace) ?? 0;
      shares.set(namespace, share + WEIGHT * ((repeat ? 1 : 0) - share));
    },
    repeatsOften: (namespace) => (shares.get(namespace) ?? 0) >= OFTEN,
  };
}
