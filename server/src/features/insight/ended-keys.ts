import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { RecordId } from "../../core/domain/record.ts";
import type { SweptKey } from "../../core/store/records/sweep-records.ts";
import { nameOf } from "./store/sample-limits.ts";
import type { EndedKey } from "./store/tombstones.ts";

/** A sampled key whose tombstone is not stored yet. */
type WaitingKey = Omit<EndedKey, "hash"> & RecordId;

/**
 * The sampled keys that the sweep has named since they were stored last: each once, as it ended last. A
 * namespace with very many gets a smaller sample before anything is stored, so that a busy sweep, such as the
 * first one of a namespace, costs no more than a quiet one.
 */
export type EndedKeys = ReturnType<typeof createEndedKeys>;

/** Keys of one namespace: a statement's. More of them halve the sample. */
const MAX_PER_NAMESPACE = 1000;
/** About 10 MiB. It is reached if statements fail for long in many namespaces. */
const MAX_WAITING = 50_000;

interface Waiting {
  shift: number;
  readonly keys: Map<string, WaitingKey>;
}

/** @param onDropped is called for each key that is dropped because too many wait. */
export function createEndedKeys(depthOf: (key: string) => number, onDropped: () => void) {
  const namespaces = new Map<string, Waiting>();
  let size = 0;

  function waitingOf(of: UsedNamespace): Waiting {
    const name = nameOf(of);
    const known = namespaces.get(name);
    if (known !== undefined) return known;
    const added = { shift: 0, keys: new Map() };
    namespaces.set(name, added);
    return added;
  }

  function add(waiting: Waiting, ended: WaitingKey): void {
    const { keys } = waiting;
    if (ended.depth < waiting.shift) return;
    if (!keys.has(ended.key)) {
      if (size >= MAX_WAITING) {
        onDropped();
        return;
      }
      size++;
    }
    keys.set(ended.key, ended);
    while (keys.size > MAX_PER_NAMESPACE) raiseShift(waiting, waiting.shift + 1);
  }

  function raiseShift(waiting: Waiting, shift: number): void {
    waiting.shift = shift;
    for (const [key, { depth }] of waiting.keys) {
      if (depth < shift && waiting.keys.delete(key)) size--;
    }
  }

  return {
    /** Adds keys, at most one in 2^shift of the namespace's; undefined: any. */
    add({ tenantId, namespace }: UsedNamespace, shift = 0, keys: readonly SweptKey[]): void {
      const waiting = waitingOf({ tenantId, namespace });
      if (shift > waiting.shift) raiseShift(waiting, shift);
      for (const key of keys)
        add(waiting, { tenantId, namespace, ...key, depth: depthOf(key.key), shift: 0 });
    },
    /** Removes and returns up to `max` keys. */
    take(max: number): readonly WaitingKey[] {
      const taken: WaitingKey[] = [];
      for (const [name, { shift, keys }] of namespaces) {
        for (const [key, ended] of keys) {
          if (taken.length === max) return taken;
          taken.push({ ...ended, shift });
          keys.delete(key);
          size--;
        }
        namespaces.delete(name);
      }
      return taken;
    },
    /** Adds keys that could not be stored, unless they have ended again. */
    putBack(keys: readonly WaitingKey[]): void {
      for (const ended of keys) {
        const waiting = waitingOf(ended);
        if (ended.shift > waiting.shift) raiseShift(waiting, ended.shift);
        if (!waiting.keys.has(ended.key)) add(waiting, ended);
      }
    },
  };
}
