import { useSyncExternalStore } from "react";

/** A value that lives beside React's tree, which parts of the page read. */
export interface Store<Value> {
  readonly get: () => Value;
  /** Sets the value, and draws again what shows it. */
  readonly set: (next: Value) => void;
  /** Returns the value, within a component. */
  readonly use: () => Value;
}

/** Returns a store that begins with a value. */
export function createStore<Value>(first: Value): Store<Value> {
  let value = first;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const get = () => value;
  return {
    get,
    set(next) {
      value = next;
      for (const listener of listeners) listener();
    },
    use: () => useSyncExternalStore(subscribe, get),
  };
}
