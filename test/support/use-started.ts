import { afterAll, beforeAll } from "vitest";

/**
 * Starts an object before the first test of the file, or of the `describe` that calls this, and ends it after the last one.
 * Returns a stand-in, so that tests name the object as a constant; it can be used from the first test or later hook on.
 */
export function useStarted<Started extends object>(
  start: () => Started | Promise<Started>,
  end: (started: Started) => unknown = () => {},
): Started {
  let object: Started | undefined;
  beforeAll(async () => {
    object = await start();
  });
  afterAll(async () => {
    if (object !== undefined) await end(object);
  });
  const started = () => {
    if (object === undefined) throw new Error("it is started before the first test, not earlier");
    return object;
  };
  return new Proxy({} as Started, {
    get: (_, property) => Reflect.get(started(), property),
    set: (_, property, value) => Reflect.set(started(), property, value),
    has: (_, property) => Reflect.has(started(), property),
    ownKeys: () => Reflect.ownKeys(started()),
    // A proxy may report a property that its own target lacks only as a configurable one.
    getOwnPropertyDescriptor(_, property) {
      const descriptor = Reflect.getOwnPropertyDescriptor(started(), property);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}
