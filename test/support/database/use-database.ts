import { afterAll, beforeAll } from "vitest";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/**
 * Creates a database before the first test of the file, or of the `describe` that calls this, and drops it after the last one.
 * It is a copy of `template`, and can be used from the first test or hook after this call on, not earlier.
 */
export function useDatabase(template?: string): TestDatabase {
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    database = await createTestDatabase(template);
  });
  afterAll(() => database?.drop());
  return startedLater(() => database);
}

/** Returns a stand-in for an object that is started later, so that a test can name it as a constant. */
export function startedLater<Started extends object>(find: () => Started | undefined): Started {
  const started = () => {
    const object = find();
    if (object === undefined) throw new Error("it is started before the first test, not earlier");
    return object;
  };
  return new Proxy({} as Started, {
    get: (_, property) => Reflect.get(started(), property),
    has: (_, property) => Reflect.has(started(), property),
    ownKeys: () => Reflect.ownKeys(started()),
    // A proxy may report a property that its own target lacks only as a configurable one.
    getOwnPropertyDescriptor(_, property) {
      const descriptor = Reflect.getOwnPropertyDescriptor(started(), property);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}
