import { LRUCache } from "lru-cache";

/**
 * How often the claims of a namespace turn out to be repeats: whether asking Redis before Postgres is worth it there, so
 * that a fresh claim doesn't pay for the repeats of others.
 */
export interface RepeatMeter {
  /** A claim was answered: with a result, or with anything else. */
  count(namespace: string, repeat: boolean): void;
  /** Whether at least one in ten claims was a repeat lately. */
  repeatsOften(namespace: string): boolean;
}

/** The weight of the newest claim: about the last two hundred count. */
const WEIGHT = 1 / 100;
/** A round trip to Redis costs about a tenth of a statement's, so that it pays from one repeat in ten. */
const OFTEN = 0.1;
/** Beyond, the one that was counted longest ago is forgotten. */
const MAX_NAMESPACES = 10_000;

/** A meter that has seen nothing: nothing repeats often. Names are whatever tells namespaces of all tenants apart. */
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
