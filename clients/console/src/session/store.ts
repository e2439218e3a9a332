import { useSyncExternalStore } from "react";

/** Returns what `use` returns of the browser's storage; `otherwise` where the browser forbids it, or has something else in it. */
export function ofStorage<Value>(use: () => Value, otherwise: Value): Value {
  try {
    return use();
  } catch {
    return otherwise;
  }
}

/** Returns a store of a value that lives beside React's tree, which parts of the page read. */
export function createStore<Value>(first: Value) {
  let value = first;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const get = () => value;
  return {
    get,
    /** Sets the value, and draws again what shows it. */
    set(next: Value) {
      value = next;
      for (const listener of listeners) listener();
    },
    /** Returns the value, within a component. */
    use: () => useSyncExternalStore(subscribe, get),
  };
}
