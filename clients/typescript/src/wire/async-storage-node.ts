import { AsyncLocalStorage } from "node:async_hooks";
import type { AsyncStorage } from "./async-storage-portable.ts";

/** Returns a storage whose value holds within a function, also after its awaits. */
export function newAsyncStorage<Value>(): AsyncStorage<Value> | undefined {
  return new AsyncLocalStorage();
}
