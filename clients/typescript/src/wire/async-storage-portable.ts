/** A value that holds within a function, also after its awaits. */
export interface AsyncStorage<Value> {
  getStore(): Value | undefined;
  run<Returned>(value: Value, fn: () => Returned): Returned;
}

/** The function of `async-storage-node.ts` for browsers and Workers, which have no such storage. */
export function newAsyncStorage<Value>(): AsyncStorage<Value> | undefined {
  return undefined;
}
